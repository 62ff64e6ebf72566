//! Which addresses deliveries may go to beyond the public ones.

use domain::destination::AddressPolicy;
use ipnet::IpNet;

/// Arguments of the address policy.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct AddressPolicyArgs {
    /// Networks that are not public and may still be delivered to, separated by commas.
    #[arg(long, env = "FENCEPOST_ALLOW_NETWORKS", value_delimiter = ',', value_name = "CIDR")]
    pub allow_networks: Vec<IpNet>,
}

impl AddressPolicyArgs {
    /// The policy that they ask for.
    #[must_use]
    pub fn policy(&self) -> AddressPolicy {
        AddressPolicy { allow_networks: self.allow_networks.clone() }
    }
}
