import { hash } from 'node:crypto';
import type { Entropy } from '../../../ports/entropy.ts';

/** A secret of an app as stored: never the text, only its digest. */
export interface AppSecretHash {
  /** Hex SHA-256 of the secret's UTF-8 bytes. */
  hash: string;
  createdAtMs: number;
  /** The first millisecond at which the secret is refused; null while it has no end. */
  expiresAtMs: number | null;
}

/** A new secret: 32 random bytes, so that a plain SHA-256 of it is as good as a slow password hash. */
export function drawAppSecret(entropy: Entropy): string {
  return `service_app_secret_${Buffer.from(entropy.bytes(32)).toString('base64url')}`;
}

export function hashAppSecret(secret: string, createdAtMs: number): AppSecretHash {
  return { hash: hash('sha256', secret), createdAtMs, expiresAtMs: null };
}

/** Those of an app's secrets that are accepted at `nowMs`. */
export function secretsInForce(hashes: readonly AppSecretHash[], nowMs: number): AppSecretHash[] {
  return hashes.filter(({ expiresAtMs }) => expiresAtMs === null || nowMs < expiresAtMs);
}
