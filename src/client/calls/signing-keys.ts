import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type AuthorizationKey, aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { ConfigError } from '../../config.ts';

/** The keys of the seeded users, which are public. */
const seededKeys: Readonly<Record<string, AuthorizationKey>> = {
  alice: aliceKey,
  bob: bobKey,
  carol: carolKey,
};

const seededSigners = Object.keys(seededKeys);

/** @throws ConfigError */
export function seededKey(name: string): KeyObject {
  const key = Object.hasOwn(seededKeys, name) ? seededKeys[name] : undefined;
  if (key !== undefined) return fromPkcs8(key.privateKey);
  throw invalid(
    `--sign: expected ${seededSigners.join(', ')}, got \`${name}\`; --key <file> signs with a key of your own`,
  );
}

/**
 * Reads a P-256 private key: PEM, or base64 PKCS #8, with or without the prefix `wallet-auth:` of published clients.
 *
 * @throws ConfigError, which does not contain the key.
 */
export function keyFromFile(file: string): KeyObject {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch {
    throw invalid(`--key: \`${file}\` cannot be read`);
  }
  let key: KeyObject | undefined;
  try {
    key = text.includes('-----BEGIN') ? createPrivateKey(text) : fromPkcs8(text.replace(/^wallet-auth:/, ''));
  } catch {
    // Not a key at all.
  }
  if (key?.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key;
  throw invalid(`--key: expected a P-256 private key as PEM or base64 PKCS #8 in \`${file}\``);
}

/** An authorization signature: base64 of the DER of ECDSA over SHA-256. */
export function signPayload(key: KeyObject, payload: string): string {
  return sign('sha256', Buffer.from(payload, 'utf8'), key).toString('base64');
}

function fromPkcs8(base64: string): KeyObject {
  return createPrivateKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'pkcs8' });
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid option:', [fault]);
}
