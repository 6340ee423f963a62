import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryCertificateFolder } from '../adapters/certificate.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { formatWebhookSecret, parseWebhookSecret } from '../crypto/webhook-signature.ts';

/**
 * The secret with which `custos listen` signs: the same at every start, so that endpoints need to be configured once.
 * Stored in the sandbox's data folder if it is given, otherwise in a folder of this user.
 */
export function listenSecret(data: string | undefined): string {
  const file = join(data ?? temporaryCertificateFolder(), 'listen-secret.txt');
  const stored = readSecret(file);
  if (stored !== undefined) return stored;
  const created = formatWebhookSecret(systemEntropy.bytes(32));
  try {
    writeFileSync(file, `${created}\n`, { mode: 0o600, flag: 'wx' });
    return created;
  } catch {
    // Written by another process in the meantime, or the folder is read-only.
    return readSecret(file) ?? created;
  }
}

/** Undefined if there is none. */
function readSecret(file: string): string | undefined {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    parseWebhookSecret(secret);
    return secret;
  } catch {
    return undefined;
  }
}
