import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemEntropy } from '../../src/adapters/runtime.ts';
import { rotateSealedKeys } from '../../src/admin/rotate-keys.ts';
import {
  masterKeyCheckBinding,
  signingKeyBinding,
  walletImportBinding,
  walletKeyBinding,
  webhookSecretBinding,
} from '../../src/domain/base/sealed-keys/sealed-keys.ts';
import { checkMasterKey } from '../../src/domain/wallets/wallets/wallet-keys.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { createMasterKeyEnvelopes, localMasterKey } from '../../src/keys/master-keys.ts';
import type { SealBinding, SealedKey } from '../../src/ports/key-store.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { databaseKinds } from '../support/databases.ts';
import { openOperations, type TestOperations } from '../support/run-operations.ts';

// The key of the operations' own key store.
const former = localMasterKey('test', Buffer.alloc(32, 7), systemEntropy);
const latter = localMasterKey('latter', randomBytes(32), systemEntropy);
const both = createKeyStore({ masterKeys: [latter, former], entropy: systemEntropy });
const onlyLatter = createKeyStore({ masterKeys: [latter], entropy: systemEntropy });

const transactionsOf = ({ database }: TestOperations) => inUnitOf(unitsOf(database));

async function makeWallets(operations: TestOperations, count: number): Promise<void> {
  const wallets = Array.from({ length: count }, () => ({ chain_type: 'tron' }));
  expect((await operations.run('createWalletsBatch', { body: { wallets } })).status).toBe(200);
}

describe('rows sealed by an earlier version', () => {
  const { master_key_hex: masterKeyHex, rows } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../vectors/sealed-rows.json'), 'utf8'),
  ) as { master_key_hex: string; rows: readonly Record<string, string>[] };
  const before = localMasterKey('before', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  const keys = { masterKeys: [latter, before] as const, entropy: systemEntropy };
  const [envelopes, keyStore] = [createMasterKeyEnvelopes({ ...keys }), createKeyStore({ ...keys })];

  const bindings: Record<string, (row: never) => SealBinding> = {
    wallet_keys: ({ wallet_id: id, ...row }: { wallet_id: string; app_id: string; chain_type: string }) =>
      walletKeyBinding({ ...row, id }),
    // The purpose of a wallet's key, which imports of earlier versions have.
    wallet_imports: walletKeyBinding,
    app_signing_keys: signingKeyBinding,
    webhook_secrets: webhookSecretBinding,
    master_key_checks: () => masterKeyCheckBinding,
  };

  test.each(rows)(
    'rows sealed by an earlier version are opened and rewrapped under another master key: $table',
    async ({ table, ...row }) => {
      const binding = bindings[table!]!(row as never);
      const sealed = {
        sealedSecret: Buffer.from(row.sealed_secret_hex!, 'hex'),
        wrappedDataKey: Buffer.from(row.wrapped_data_key_hex!, 'hex'),
        masterKeyId: row.master_key_id!,
      };
      const open = (each: SealedKey) =>
        envelopes.withSecret(each, binding, (secret) => Buffer.from(secret).toString('hex'));
      expect(await open(sealed)).toBe(row.secret_hex);
      const moved = await keyStore.rewrap(
        sealed,
        table === 'wallet_imports' ? walletImportBinding(row as never) : binding,
      );
      expect(moved.masterKeyId).toBe('latter');
      expect(await open(moved)).toBe(row.secret_hex);
    },
  );
});

const unobserved = { onProgress: () => undefined, record: async () => undefined };

describe.each(databaseKinds)('on %s', (kind) => {
  test('two concurrent rotations rewrap every key once', async () => {
    await using operations = await openOperations(kind);
    for (let batch = 0; batch < 3; batch += 1) await makeWallets(operations, 80);
    const inTransaction = transactionsOf(operations);
    let recorded = 0;
    const observer = {
      ...unobserved,
      async record(_: unknown, count: number) {
        recorded += count;
      },
    };
    const moved = await Promise.all([1, 2].map(() => rotateSealedKeys(both, inTransaction, observer)));
    expect([moved[0]! + moved[1]!, recorded]).toEqual([240, 240]);
  });

  test('a master key that was used for sealing during the rotation is still required', async () => {
    await using operations = await openOperations(kind);
    const inTransaction = transactionsOf(operations);
    await inTransaction((em) => checkMasterKey(em, operations.services.keyStore));
    await makeWallets(operations, 3);
    // Two for wallets, one each for policies, key quorums, voucher keys, imports, token keys, webhook secrets, fingerprint
    // keys, payment instructions, keys of the audit log and codes of test accounts; in the thirteenth transaction the rotation drops earlier keys.
    let transactions = 0;
    const moved = await rotateSealedKeys(
      both,
      async (work) => {
        transactions += 1;
        if (transactions === 13) await makeWallets(operations, 1);
        return inTransaction(work);
      },
      unobserved,
    );
    expect({ moved, transactions }).toEqual({ moved: 3, transactions: 13 });
    const startWith = (keyStore: typeof both) => inTransaction((em) => checkMasterKey(em, keyStore));
    await expect(startWith(onlyLatter)).rejects.toThrow('master key `test` is not configured');
    await startWith(both);
    expect(await rotateSealedKeys(both, inTransaction, unobserved)).toBe(1);
    await startWith(onlyLatter);
  });
});
