"""Both ends of a TCP connection prove that they know the secret in the address file; the secret itself never travels.

Each end sends a nonce and then an HMAC-SHA256 of both nonces under the secret, the engine first: `Hello`, `Challenge`,
`Proof`, `Welcome`. Each proof names its role, so that an end is never convinced by its own words sent back to it.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Literal

from engine.common.errors import MalformedMessage, ProtocolError
from engine.common.messages import Challenge, Proof

NONCE_NBYTES = 32


class Impostor(ProtocolError):
    """The other end does not know the secret."""


class ClientSide:
    """One connection's proofs, as the client sees them; `nonce` is for its `Hello`."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.nonce = secrets.token_bytes(NONCE_NBYTES)

    def answer(self, challenge: Challenge) -> Proof:
        """Check the engine's proof and give the client's. Raises Impostor."""
        expected = _proof("engine", self._secret, self.nonce, challenge.nonce)
        if not hmac.compare_digest(challenge.proof, expected):
            raise Impostor("The process at the engine's port does not know the secret of the address file.")
        return Proof(proof=_proof("client", self._secret, self.nonce, challenge.nonce))


class EngineSide:
    """One connection's proofs, as the engine sees them. Raises MalformedMessage for a nonce of another size."""

    def __init__(self, secret: str, client_nonce: bytes) -> None:
        if len(client_nonce) != NONCE_NBYTES:
            raise MalformedMessage(f"A hello over TCP needs a nonce of {NONCE_NBYTES} bytes.")
        nonce = secrets.token_bytes(NONCE_NBYTES)
        self.challenge = Challenge(nonce=nonce, proof=_proof("engine", secret, client_nonce, nonce))
        self._expected = _proof("client", secret, client_nonce, nonce)

    def accepts(self, proof: Proof) -> bool:
        return hmac.compare_digest(proof.proof, self._expected)


def _proof(role: Literal["engine", "client"], secret: str, client_nonce: bytes, engine_nonce: bytes) -> bytes:
    return hmac.digest(secret.encode(), role.encode() + client_nonce + engine_nonce, "sha256")
