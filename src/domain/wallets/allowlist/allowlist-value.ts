import { invalidField } from '../../../errors.ts';
import type { AllowlistEntryRequest } from '../../../generated/schemas.ts';
import { normalizeWalletAddress } from '../../base/addresses/normalize-wallet-address.ts';
import { normalizeEmail, normalizePhoneNumber } from '../users/linked-account-kinds.ts';

// RFC 1035 §2.3.1, with a leading digit allowed as in RFC 1123 §2.1.
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/**
 * An entry's value in the stored form of linked accounts, so that the two can be compared.
 *
 * @throws ApiError invalid_data
 */
export function readAllowlistValue({ type, value }: AllowlistEntryRequest): string {
  const normal = normalize(type, value);
  if (normal === undefined) throw invalidField('/value', expectations[type]);
  return normal;
}

const expectations: Readonly<Record<AllowlistEntryRequest['type'], string>> = {
  email: 'expected an email address',
  emailDomain: 'expected a domain such as `acme.example`',
  phone: 'expected a phone number',
  wallet: 'expected an address of `ethereum` or `solana`',
};

function normalize(type: AllowlistEntryRequest['type'], value: string): string | undefined {
  if (type === 'phone') return normalizePhoneNumber(value);
  if (type === 'wallet') {
    return normalizeWalletAddress('ethereum', value) ?? normalizeWalletAddress('solana', value);
  }
  if (type === 'emailDomain' && !DOMAIN.test(value)) return undefined;
  return normalizeEmail(value);
}
