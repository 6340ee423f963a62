import { entropyToMnemonic, mnemonicToSeedSync } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { Client } from 'pg';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import {
  auditKeyBinding,
  fingerprintKeyBinding,
  policyBinding,
  signingKeyBinding,
  voucherKeyBinding,
  walletImportBinding,
  walletKeyBinding,
} from '../../../src/domain/base/sealed-keys/sealed-keys.ts';
import { policyDigest } from '../../../src/engine/authorization/policy-seals.ts';
import { authorityDigest } from '../../../src/engine/authorization/wallet-authority.ts';
import { decodeWalletSecret } from '../../../src/engine/signing/wallet-key.ts';
import { createMasterKeyEnvelopes, localMasterKey } from '../../../src/keys/master-keys.ts';
import type { SealBinding } from '../../../src/ports/key-store.ts';

interface SealedRow {
  readonly id: string;
  readonly app_id: string;
  readonly chain_type: string;
  readonly authority: string | null;
  readonly content: string;
  readonly sealed_secret: Buffer;
  readonly wrapped_data_key: Buffer;
  readonly master_key_id: string;
}

interface Kind {
  readonly table: string;
  readonly rows: string;
  readonly bindingOf: (row: SealedRow) => SealBinding;
}

/** Secrets that the HTTP process may have, such as those of webhooks, are omitted. */
const kinds: readonly Kind[] = [
  {
    table: 'wallet_keys',
    rows: 'select wallet_id as id, app_id, chain_type, k.* from wallet_keys k join wallets w on w.id = k.wallet_id',
    bindingOf: (row) => ({
      ...walletKeyBinding(row),
      ...(row.authority === null ? {} : { authority: authorityDigest(JSON.parse(row.authority)) }),
    }),
  },
  {
    table: 'policy_seals',
    rows: 'select * from policy_seals',
    bindingOf: (row) => ({ ...policyBinding(row), authority: policyDigest(row.content) }),
  },
  { table: 'wallet_imports', rows: 'select * from wallet_imports', bindingOf: walletImportBinding },
  { table: 'app_signing_keys', rows: 'select * from app_signing_keys', bindingOf: signingKeyBinding },
  { table: 'voucher_keys', rows: 'select * from voucher_keys', bindingOf: voucherKeyBinding },
  { table: 'fingerprint_keys', rows: 'select * from fingerprint_keys', bindingOf: fingerprintKeyBinding },
  {
    table: 'audit_keys',
    rows: "select * from audit_keys where id = 'checkpoints'",
    bindingOf: auditKeyBinding,
  },
];

/** Opens every secret of a database that may be only in the signer, with the master key, and the data keys. */
export async function openedSecrets(databaseUrl: string, masterKey: Uint8Array) {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  const secrets = new Map<string, Buffer>();
  const phrases = new Map<string, string>();
  try {
    const { rows: checks } = await client.query<{ master_key_id: string }>(
      'select master_key_id from master_key_checks',
    );
    const master = localMasterKey(checks[0]!.master_key_id, masterKey, systemEntropy);
    let dataKey: Buffer | undefined;
    const unwrap: typeof master.unwrap = async (...sealed) => {
      const key = await master.unwrap(...sealed);
      dataKey = Buffer.from(key);
      return key;
    };
    const envelopes = createMasterKeyEnvelopes({
      masterKeys: [{ ...master, unwrap }],
      entropy: systemEntropy,
    });
    for (const { table, rows: query, bindingOf } of kinds) {
      const { rows } = await client.query<SealedRow>(query);
      for (const row of rows) {
        const sealed = {
          sealedSecret: row.sealed_secret,
          wrappedDataKey: row.wrapped_data_key,
          masterKeyId: row.master_key_id,
        };
        const secret = await envelopes.withSecret(sealed, bindingOf(row), (open) => Buffer.from(open));
        const name = `${table} ${row.id}`;
        secrets.set(`data key of ${name}`, dataKey!);
        if (table !== 'wallet_keys') {
          secrets.set(name, secret);
          continue;
        }
        const { privateKey, entropy } = decodeWalletSecret(secret);
        secrets.set(`private key of ${row.chain_type} ${row.id}`, Buffer.from(privateKey));
        if (entropy === undefined) continue;
        const phrase = entropyToMnemonic(entropy, wordlist);
        secrets.set(`entropy of ${row.chain_type} ${row.id}`, Buffer.from(entropy));
        secrets.set(`seed of ${row.chain_type} ${row.id}`, Buffer.from(mnemonicToSeedSync(phrase)));
        phrases.set(`phrase of ${row.chain_type} ${row.id}`, phrase);
      }
    }
    return { secrets, phrases };
  } finally {
    await client.end();
  }
}
