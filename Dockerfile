# One image for api, worker and operators: the one binary under the three names that it goes by.
#
#   docker build --tag fencepost .
#
# It runs as a user of its own, writes nothing, and takes its settings from variables. See docs/OPERATIONS.md.

# rustup in this image fetches the very version that rust-toolchain.toml names.
ARG BUILD_IMAGE=rust:1.95-bookworm
# The same distribution: the binary needs its libc, and nothing else of it.
ARG RUN_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package fencepost --bin fencepost

FROM ${RUN_IMAGE}
# The roots that certificates of receivers are checked with.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/fencepost /usr/local/bin/
RUN ln -s fencepost /usr/local/bin/fencepost-api \
    && ln -s fencepost /usr/local/bin/fencepost-worker
# By its number, so that who starts it can see that it is not root.
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["fencepost"]
