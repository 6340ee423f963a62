import { expect, test } from 'vitest';
import document from '../../openapi/openapi.json' with { type: 'json' };

/** Names that sound like a secret, of values that are public. A new one is added here or marked `x-secret` in the contract. */
const harmless = new Set([
  'authorization', // an EIP-7702 authorization, which is public once it is sent
  'authorization_details',
  'authorization_keys', // public keys
  'authorization_threshold',
  'authorization_list',
  'aa_authorization_list',
  'device_authorization_endpoint',
  'encrypted_authorization_key', // an object, whose ciphertext is marked
  'idempotency_key',
  'require_user_password_on_create',
  'secret_id',
  'signature_options',
  'signature', // of a wallet, for the caller; that of an intent is marked
  'fee_payer_signature',
  'transaction_signature',
  'txn_signature',
  'token_endpoint',
  'token_endpoint_auth_methods_supported',
]);

const suspicious =
  /secret|private|password|passcode|jwt|ciphertext|mnemonic|seed_?phrase|otp|authorization|signature|_token$|^token$/;
// Assets, not credentials.
const assets =
  /^(input|output|call|fee|raw|share|source|destination)?_?token$|^custom_jwt_auth$|^export_seed_phrase$/;

interface Schema {
  readonly properties?: Readonly<
    Record<string, { readonly 'x-secret'?: boolean; readonly description?: string }>
  >;
}

test('every property that sounds like a secret is marked, or known to be none', () => {
  const schemas = Object.entries(document.components.schemas as unknown as Record<string, Schema>);
  const unmarked = schemas.flatMap(([name, { properties = {} }]) =>
    Object.entries(properties)
      .filter(([property, schema]) => suspicious.test(property) && schema['x-secret'] !== true)
      .filter(([property]) => !harmless.has(property) && !assets.test(property))
      .map(([property]) => `${name}.${property}`),
  );
  expect(unmarked).toEqual([]);
});
