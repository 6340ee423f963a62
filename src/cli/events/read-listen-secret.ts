import { readFileSync } from 'node:fs';
import { InvalidWebhookSecretError, parseWebhookSecret } from '../../crypto/webhook-signature.ts';
import { invalidOption } from '../sandbox-options.ts';

/** The secret of a `--secret` option, or of the file after its `@`. Throws ConfigError. */
export function readListenSecret(text: string): string {
  try {
    const secret = text.startsWith('@') ? readFileSync(text.slice(1), 'utf8').trim() : text;
    parseWebhookSecret(secret);
    return secret;
  } catch (error) {
    if (error instanceof InvalidWebhookSecretError) throw invalidOption(`--secret: ${error.message}`);
    throw invalidOption(`--secret: \`${text.slice(1)}\` cannot be read`);
  }
}
