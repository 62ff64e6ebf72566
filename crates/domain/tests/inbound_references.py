"""Signs requests with the senders' own libraries, one JSON object a line.

`just inbound-references` runs it. The lines are kept, so that the test that verifies them needs no
Python. Where no library signs, Python's hmac does, by the sender's documented rule.
"""

import base64
import datetime
import hashlib
import hmac
import json
import random
import urllib.parse

import standardwebhooks
import stripe
import svix
from twilio.request_validator import RequestValidator

NOW = 1_700_000_000
DRAW = random.Random(7)
TEXTS = ['{"id":"evt_1","type":"a.b"}', "", "{}", 'caf\u00e9 \u20ac "\\n" \x00\t', "a" * 3000, "a=b&c=%2B+d"]


def line(by, scheme, secret, headers, body, target="/in/s"):
    body = body if isinstance(body, bytes) else body.encode()
    body = base64.b64encode(body).decode()
    fields = {"by": by, "scheme": scheme, "secret": secret, "now": NOW, "target": target}
    print(json.dumps(fields | {"headers": headers, "body": body}))


def mac(secret, content, algorithm="sha256"):
    return hmac.new(secret.encode(), content, algorithm)


def whsec(length):
    return "whsec_" + base64.b64encode(DRAW.randbytes(length)).decode()


at = datetime.datetime.fromtimestamp(NOW, tz=datetime.timezone.utc)
for number, text in enumerate(TEXTS):
    name = f"msg_{number}"
    for length in (24, 32, 64):
        secret = whsec(length)
        signature = standardwebhooks.Webhook(secret).sign(name, at, text)
        old = standardwebhooks.Webhook(whsec(length)).sign(name, at, text)
        headers = [["webhook-id", name], ["webhook-timestamp", str(NOW)], ["webhook-signature", f"{old} {signature}"]]
        line("standardwebhooks", {"type": "standard_webhooks"}, secret, headers, text)
        signature = svix.Webhook(secret).sign(name, at, text)
        headers = [["Svix-Id", name], ["Svix-Timestamp", str(NOW)], ["Svix-Signature", signature]]
        line("svix", {"type": "svix"}, secret, headers, text)
    secret = "whsec_" + DRAW.randbytes(16).hex()
    header = stripe.WebhookSignature.generate_signature_header(text, secret, timestamp=NOW)
    line("stripe", {"type": "stripe"}, secret, [["Stripe-Signature", header]], text)

bodies = [text.encode() for text in TEXTS] + [b"\xff\xfe\x00", DRAW.randbytes(500)]
for body in bodies:
    secret = DRAW.randbytes(20).hex()
    stamp = str(NOW).encode()
    headers = [["X-Hub-Signature-256", "sha256=" + mac(secret, body).hexdigest()]]
    line("hmac", {"type": "github"}, secret, headers, body)
    signature = "v0=" + mac(secret, b"v0:" + stamp + b":" + body).hexdigest()
    headers = [["X-Slack-Request-Timestamp", str(NOW)], ["X-Slack-Signature", signature]]
    line("hmac", {"type": "slack"}, secret, headers, body)
    headers = [["X-Shopify-Hmac-Sha256", base64.b64encode(mac(secret, body).digest()).decode()]]
    line("hmac", {"type": "shopify"}, secret, headers, body)
    header = f"ts={NOW};h1={mac(secret, stamp + b':' + body).hexdigest()}"
    line("hmac", {"type": "paddle"}, secret, [["Paddle-Signature", header]], body)
    for algorithm in ("sha1", "sha256", "sha512"):
        signature = mac(secret, body, algorithm).hexdigest().upper()
        scheme = {"type": "hmac", "header": "X-Sig", "algorithm": algorithm}
        line("hmac", scheme, secret, [["X-Sig", signature]], body)

base = "https://hooks.example.com"
for target in ("/in/s", "/in/s?b=2&a=1", "/in/s?x=Couldn%27t+find&y=%2B"):
    for port in ("", ":443", ":8443"):
        fields = {"To": "+15550000000", "Body": "h\u00e9llo & = more", "Empty": "", "Z": "~!*'()", "a": "1"}
        form = [["Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"]]
        for algorithm in ("sha1", "sha256"):
            signature = RequestValidator("token").compute_signature(base + port + target, fields, f"hmac_{algorithm}")
            scheme = {"type": "twilio", "public_base": base + port.replace(":443", ""), "algorithm": algorithm}
            headers = form + [["X-Twilio-Signature", signature]]
            line("twilio", scheme, "token", headers, urllib.parse.urlencode(fields), target)
        body = b'{"a":1}'
        covered = target + ("&" if "?" in target else "?") + "bodySHA256=" + hashlib.sha256(body).hexdigest()
        signature = RequestValidator("token").compute_signature(base + port + covered, {})
        scheme = {"type": "twilio", "public_base": base + port}
        headers = [["Content-Type", "application/json"], ["X-Twilio-Signature", signature]]
        line("twilio", scheme, "token", headers, body, covered)
