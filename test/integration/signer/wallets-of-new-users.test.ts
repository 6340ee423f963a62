import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseKinds } from '../../support/databases.ts';
import type { TestOperations } from '../../support/run-operations.ts';
import { keptWallets } from '../../support/signer/kept-wallets.ts';
import { openLogins } from '../../support/signer/login-clients.ts';

// Wallets whose owners are users that are made in the same request or before, and are not named by it.

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  let wallets: ReturnType<typeof keptWallets>;
  beforeAll(async () => {
    server = await openLogins(kind, true);
    wallets = keptWallets(server);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function isSealed(walletId: string): Promise<boolean> {
    return (await wallets.rowOf('wallet_keys', ['wallet_id', walletId])).authority !== null;
  }

  type Linked = { linked_accounts: { type: string; id?: string }[] };
  const walletsIn = ({ linked_accounts: accounts }: Linked): string[] =>
    accounts.flatMap(({ type, id }) => (type === 'wallet' && id != null ? [id] : []));

  test('the wallets that a user gets are kept for the user', async () => {
    const subject = `ann-${kind}`;
    const two = [{ chain_type: 'ethereum' }, { chain_type: 'ethereum' }];
    const body = { linked_accounts: [wallets.account(subject)], wallets: two };
    const ann = await wallets.done<Linked & { id: string }>('createUser', { body });
    const later = await wallets.done<Linked>('pregenerateUserWallets', {
      ...{ path: { user_id: ann.id }, body: { wallets: two } },
    });
    expect(walletsIn(later)).toHaveLength(4);
    const key = await wallets.keyFor(subject);
    for (const walletId of walletsIn(later)) await wallets.expectKept(walletId, key);
  });

  test('so are those of several users that are made at once', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `user-${index}-${kind}`);
    const users = names.map((name) => ({
      linked_accounts: [wallets.account(name)],
      wallets: [{ chain_type: 'ethereum' }],
    }));
    type Batch = { results: { success: boolean; id: string }[] };
    const { results } = await wallets.done<Batch>('batchCreateUsers', { body: { users } });
    for (const at of [0, 19]) {
      const path = { user_id: results[at]!.id };
      const [walletId] = walletsIn(await wallets.done<Linked>('getUser', { path }));
      await wallets.expectKept(walletId!, await wallets.keyFor(names[at]!));
    }
  });

  type Recoverable = { wallets: { id: string }[] };
  const withRecovery = (primary: string, ...linked_accounts: object[]) =>
    wallets.done<Recoverable>('createWalletsWithRecovery', {
      body: {
        wallets: [{ chain_type: 'ethereum' }, { chain_type: 'ethereum' }],
        primary_signer: { subject_id: primary },
        recovery_user: { linked_accounts },
      },
    });

  test('wallets with recovery are kept where the key store verifies both users', async () => {
    const email = { type: 'email', address: `carl-${kind}@example.com` };
    const made = await withRecovery(`carl-${kind}`, wallets.account(`carls-${kind}`), email);
    const [carl, recovery] = [await wallets.keyFor(`carl-${kind}`), await wallets.keyFor(`carls-${kind}`)];
    for (const { id } of made.wallets) {
      await wallets.expectKept(id, carl);
      await wallets.expectKept(id, recovery);
    }
    const own = await withRecovery(`dora-${kind}`, wallets.account(`dora-${kind}`));
    const dora = await wallets.keyFor(`dora-${kind}`);
    for (const { id } of own.wallets) await wallets.expectKept(id, dora);
  });

  test('who recovers by an account of no login is believed as the server says, and keeps the wallet usable', async () => {
    const email = { type: 'email', address: `emil-${kind}@example.com` };
    const made = await withRecovery(`emil-${kind}`, email);
    const key = await wallets.keyFor(`emil-${kind}`);
    for (const { id } of made.wallets) {
      expect([await isSealed(id), await wallets.signs(id, key)]).toEqual([false, 200]);
    }
  });
});
