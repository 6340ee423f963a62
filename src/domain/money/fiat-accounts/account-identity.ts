import { hash } from 'node:crypto';
import { canonicalJson } from '../../../crypto/canonical-json.ts';
import type {
  CreateExternalFiatAccountRequest,
  ExternalFiatAccountData,
} from '../../../generated/schemas.ts';

/**
 * What makes two registrations one account: its numbers and its currency.
 *
 * CHOICE: names and addresses are not part of it. To change them, remove the account and register it again.
 */
export function identityOf({ account, currency }: CreateExternalFiatAccountRequest): object {
  return { type: account.type, currency, numbers: numbersOf(account) };
}

function numbersOf(account: ExternalFiatAccountData): readonly string[] {
  switch (account.type) {
    case 'us':
      return [account.routing_number, account.account_number];
    case 'gb':
      return [account.sort_code, account.account_number];
    case 'iban':
      return [account.account_number];
    case 'swift':
      return [account.bic, account.account_number];
    case 'pix':
      return [account.pix_key ?? '', account.br_code ?? ''];
  }
}

/**
 * An idempotency key for the provider, never stored: a repeated request has the same key, and so has one of another
 * process at the same time.
 *
 * @param parts JSON values.
 */
export function providerKey(...parts: readonly unknown[]): string {
  return hash('sha256', canonicalJson(parts));
}
