import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { createUserKey } from '../../src/domain/wallets/user-keys/user-key.ts';
import type { User } from '../../src/generated/schemas.ts';
import { databaseKinds } from '../support/databases.ts';
import { openOperations, type TestOperations } from '../support/run-operations.ts';

const carolEmail = { type: 'email', address: 'carol@example.com' };
const dave = { type: 'custom_auth', custom_user_id: 'dave' };

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  beforeEach(async () => {
    operations = await openOperations(kind);
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  const create = (...linked_accounts: object[]) =>
    operations.run('createUser', { body: { linked_accounts } });
  const make = async (...linked_accounts: object[]): Promise<User> => {
    const answer = await create(...linked_accounts);
    expect(answer.status).toBe(200);
    return answer.body as User;
  };
  const times = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => work(index)));
  const statuses = (answers: readonly { status: number }[]) => answers.map(({ status }) => status).sort();
  const kysely = () => operations.database.orm.em.fork().getKysely<Tables>();
  const rowsOf = async (table: keyof Tables & string) =>
    (await kysely().selectFrom(table).selectAll().execute()).length;
  const events = async () => {
    const rows = await kysely().selectFrom('outbox_events').selectAll().orderBy('sequence').execute();
    return rows.map(({ type, payload, resource_id }) => ({
      type,
      resource_id,
      payload: JSON.parse(payload),
    }));
  };

  describe('of concurrent requests', () => {
    test('of concurrent requests for one email address exactly one creates a user', async () => {
      const answers = await times(20, () => create(carolEmail));
      expect(statuses(answers)).toEqual([200, ...Array(19).fill(409)]);
      for (const { status, body } of answers) {
        if (status === 409) expect(body).toMatchObject({ code: 'linked_to_another_user' });
      }
      expect(await rowsOf('users')).toBe(1);
      expect(await rowsOf('linked_accounts')).toBe(1);
      expect((await events()).map(({ type }) => type)).toEqual(['user.created']);
    });

    test('for two accounts in opposite order exactly one creates a user', async () => {
      const answers = await times(12, (index) =>
        index % 2 === 0 ? create(carolEmail, dave) : create(dave, carolEmail),
      );
      expect(statuses(answers)).toEqual([200, ...Array(11).fill(409)]);
      expect(await rowsOf('linked_accounts')).toBe(2);
    });

    test('batches that share accounts create each user once', async () => {
      const users = Array.from({ length: 5 }, (_, index) => ({
        linked_accounts: [{ type: 'custom_auth', custom_user_id: String(index) }],
      }));
      const answers = await times(4, (index) =>
        operations.run('batchCreateUsers', { body: { users: index % 2 === 0 ? users : users.toReversed() } }),
      );
      const made = answers.flatMap(({ body }) => (body as { results: { success: boolean }[] }).results);
      expect(made.filter(({ success }) => success)).toHaveLength(5);
      expect(await rowsOf('users')).toBe(5);
    });

    test('that link an account of a kind to one user exactly one succeeds', async () => {
      const { id } = await make(dave);
      const answers = await times(10, (index) =>
        operations.run('linkUserAccount', {
          path: { user_id: id },
          body: { type: 'email', address: `dave-${index}@example.com` },
        }),
      );
      expect(statuses(answers)).toEqual([200, ...Array(9).fill(400)]);
      expect(await rowsOf('linked_accounts')).toBe(2);
    });

    test('that create wallets for one user each get a different index', async () => {
      const { id } = await make(dave);
      await times(8, () =>
        operations.run('pregenerateUserWallets', {
          path: { user_id: id },
          body: { wallets: [{ chain_type: 'ethereum' }] },
        }),
      );
      const { body } = await operations.run('getUser', { path: { user_id: id } });
      const indexes = (body as User).linked_accounts.slice(1).map((account) => {
        return (account as { wallet_index: number }).wallet_index;
      });
      expect(indexes).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    });

    test('that delete a user and link accounts, nothing remains of a deleted user', async () => {
      const { id } = await make(dave);
      const answers = await times(9, async (index): Promise<{ status: number }> => {
        if (index === 4) return operations.run('deleteUser', { path: { user_id: id } });
        const address = `0x${String(index).repeat(40)}`;
        const body = { type: 'wallet', chain_type: 'ethereum', address };
        return operations.run('linkUserAccount', { path: { user_id: id }, body });
      });
      expect(answers[4]?.status).toBe(204);
      for (const table of ['users', 'linked_accounts', 'user_search_terms'] as const) {
        expect(await rowsOf(table), table).toBe(0);
      }
    });

    test('that delete a user and create keys, no key outlives the user', async () => {
      const { id } = await make(dave);
      await times(9, async (index) => {
        if (index === 4) return operations.run('deleteUser', { path: { user_id: id } });
        return operations.database.orm.em
          .fork()
          .transactional((em) => createUserKey(operations.context(em as never), { userId: id }))
          .catch((error: unknown) => expect(error).toMatchObject({ code: 'not_found' }));
      });
      expect(await rowsOf('user_keys')).toBe(0);
    });

    test('for the last place of an organization exactly one gets it', async () => {
      const quorum = await operations.run('createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } });
      const made = await operations.run('createOrganization', {
        body: { display_name: 'Acme', default_key_quorum_id: (quorum.body as { id: string }).id },
      });
      const entity = { id: (made.body as { id: string }).id, type: 'organization' };
      const wallets = (count: number) =>
        Array.from({ length: count }, () => ({ chain_type: 'xrpl', entity }));
      for (const count of [75, 74]) {
        await operations.run('createWalletsBatch', { body: { wallets: wallets(count) } });
      }
      const answers = await times(6, () =>
        operations.run('createWallet', { body: { chain_type: 'xrpl', entity } }),
      );
      expect(statuses(answers)).toEqual([200, 409, 409, 409, 409, 409]);
      expect(await rowsOf('wallets')).toBe(150);
    });

    test('that add an allowlist entry all return the same entry', async () => {
      const path = { app_id: operations.app.id };
      const answers = await times(10, () =>
        operations.run('createAllowlistEntry', { path, body: { type: 'email', value: 'carol@example.com' } }),
      );
      expect(new Set(answers.map(({ body }) => (body as { id: string }).id)).size).toBe(1);
    });
  });

  describe('events', () => {
    test('events are recorded for every change of a user, in its transaction', async () => {
      const user = await make(dave);
      const path = { user_id: user.id };
      const answer = async (id: Parameters<TestOperations['run']>[0], body?: object) =>
        (await operations.run(id, { path, ...(body === undefined ? {} : { body }) })).body as User;
      const linked = await answer('linkUserAccount', carolEmail);
      const updated = await answer('linkUserAccount', carolEmail);
      const unlinked = await answer('unlinkUserAccount', { type: 'email', handle: carolEmail.address });
      await answer('setUserCustomMetadata', { custom_metadata: { tier: 'gold' } });
      const owner = await answer('pregenerateUserWallets', {
        wallets: [{ chain_type: 'ethereum', create_smart_wallet: true }, { chain_type: 'tron' }],
      });
      await answer('deleteUser');
      const [, embedded, smart] = owner.linked_accounts as { address: string }[];
      const of = (type: string, payload: object) => ({
        type,
        resource_id: user.id,
        payload: { type, ...payload },
      });
      const made = (type: string, address: string | undefined) =>
        of('user.wallet_created', { user: owner, wallet: { type, address, chain_type: 'ethereum' } });
      expect(await events()).toEqual([
        of('user.created', { user }),
        of('user.linked_account', { user: linked, account: linked.linked_accounts[1] }),
        of('user.updated_account', { user: updated, account: updated.linked_accounts[1] }),
        of('user.unlinked_account', { user: unlinked, account: updated.linked_accounts[1] }),
        made('wallet', embedded?.address),
        made('smart_wallet', smart?.address),
        of('user.deleted', { user: owner }),
      ]);
    });

    test('of a user created with wallets begin with the user', async () => {
      await operations.run('createUser', {
        body: { linked_accounts: [dave], wallets: [{ chain_type: 'solana' }, { chain_type: 'ethereum' }] },
      });
      const recorded = await events();
      expect(recorded.map(({ type }) => type)).toEqual([
        'user.created',
        'user.wallet_created',
        'user.wallet_created',
      ]);
      expect(recorded[0]?.payload.user).toEqual(recorded[2]?.payload.user);
    });

    test('events are not recorded for refused changes', async () => {
      await make(dave);
      await create(dave);
      await operations.run('batchCreateUsers', { body: { users: [{ linked_accounts: [dave] }] } });
      expect((await events()).map(({ type }) => type)).toEqual(['user.created']);
    });
  });

  describe('texts that do not fit a column or an index', () => {
    test.each([
      { name: 'U+0000', text: 'a\0b' },
      { name: 'half a surrogate pair', text: '\ud800' },
      { name: 'the other half', text: '\udc00' },
      { name: 'four bytes a character', text: '\u{1f600}'.repeat(512) },
      { name: 'what looks like a digest', text: `sha256:${'0'.repeat(64)}` },
    ])(
      'texts that do not fit a column or an index are stored, found and distinguished: $name',
      async ({ text }) => {
        const passkey = (credential_id: string) => ({
          type: 'passkey',
          credential_id,
          credential_username: 'x',
          credential_public_key: 'x',
          credential_device_type: 'singleDevice',
        });
        const telegram = {
          type: 'telegram',
          telegram_user_id: text.slice(0, 255),
          username: text.slice(0, 255),
        };
        const user = await make(passkey(text), telegram);
        expect(user.linked_accounts[0]).toMatchObject({ credential_id: text });
        const byName = { body: { username: telegram.username } };
        expect((await operations.run('getUserByTelegramUsername', byName)).body).toEqual(user);
        expect((await create(passkey(text))).status).toBe(409);
        expect((await create(passkey(`${text.slice(0, -1)}x`))).status).toBe(200);
      },
    );
  });
});
