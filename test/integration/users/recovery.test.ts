import { verifyMessage } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import { issueAccessToken } from '../../../src/domain/wallets/tokens/access-tokens.ts';
import type { CreateWalletsWithRecoveryResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const email = { type: 'email', address: 'alice@example.com' };
const tokenOf = (name: string) => ({ type: 'custom_auth', custom_user_id: name });

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  beforeEach(async () => {
    operations = await openOperations(kind);
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  const create = (linked_accounts: object[], wallets: object[] = [{ chain_type: 'ethereum' }]) =>
    operations.run('createWalletsWithRecovery', {
      body: { wallets, primary_signer: { subject_id: 'alice' }, recovery_user: { linked_accounts } },
    });
  const made = async (...args: Parameters<typeof create>): Promise<CreateWalletsWithRecoveryResponse> => {
    const answer = await create(...args);
    expect(answer.status).toBe(200);
    return answer.body as CreateWalletsWithRecoveryResponse;
  };
  const kysely = () => operations.database.orm.em.fork().getKysely<Tables>();
  const rowsOf = async (table: keyof Tables & string) =>
    (await kysely().selectFrom(table).selectAll().execute()).length;
  const events = async (type: string) => {
    const rows = await kysely()
      .selectFrom('outbox_events')
      .select('payload')
      .where('type', '=', type)
      .orderBy('sequence')
      .execute();
    return rows.map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
  };
  const userOf = async (name: string): Promise<string> => {
    const { body } = await operations.run('getUserByCustomAuthID', { body: { custom_user_id: name } });
    return (body as { id: string }).id;
  };
  /** A signing key of a user, from an access token. */
  const keyOf = async (userId: string): Promise<string> => {
    const user_jwt = await operations.database.orm.em
      .fork()
      .transactional((em) =>
        issueAccessToken(operations.context(em as OperationContext['em']), { userId, sessionId: 'login' }),
      );
    const { status, body } = await operations.run('authenticateWallets', { body: { user_jwt } });
    expect(status).toBe(200);
    return (body as { authorization_key: string }).authorization_key;
  };
  const sign = async (wallet: Wallet, key: string): Promise<boolean> => {
    const { body } = await operations.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
      signWith: [key],
    });
    const { signature } = (body as { data: { signature: `0x${string}` } }).data;
    return verifyMessage({ address: wallet.address as `0x${string}`, message: 'hello', signature });
  };

  test('the primary signer and the recovery user sign alone; the first key of the latter is a recovery', async () => {
    const { wallets, recovery_user_id: recoveryId } = await made(
      [email, tokenOf('alice-recovery')],
      [{ chain_type: 'ethereum', external_id: 'one' }, { chain_type: 'ethereum' }, { chain_type: 'solana' }],
    );
    expect(wallets.map(({ chain_type }) => chain_type)).toEqual(['ethereum', 'ethereum', 'solana']);
    const aliceId = await userOf('alice');
    expect(recoveryId).not.toBe(aliceId);
    expect((await events('user.created')).map(({ user }) => (user as { id: string }).id)).toEqual([
      aliceId,
      recoveryId,
    ]);
    const ofWallet = ({ id, address }: Wallet) => ({
      user_id: recoveryId,
      wallet_id: id,
      wallet_address: address,
    });
    expect(await events('wallet.recovery_setup')).toEqual(
      wallets.map((wallet) => ({
        type: 'wallet.recovery_setup',
        ...ofWallet(wallet),
        method: 'service_generated_recovery_key',
      })),
    );
    const [first, second, third] = wallets as [Wallet, Wallet, Wallet];
    expect(await sign(first, await keyOf(aliceId))).toBe(true);
    expect(await events('wallet.recovered')).toEqual([]);

    // An archived wallet is covered by no key, so it is recovered by the first one after its restoration.
    await operations.run('archiveWallet', { path: { wallet_id: third.id } });
    expect(await sign(second, await keyOf(recoveryId))).toBe(true);
    await keyOf(recoveryId);
    const recovered = await events('wallet.recovered');
    expect(recovered).toHaveLength(2);
    expect(recovered).toEqual(
      expect.arrayContaining(
        [first, second].map((wallet) => ({ type: 'wallet.recovered', ...ofWallet(wallet) })),
      ),
    );
  });

  test('a recovery user with the token of the primary signer is that user, who recovers nothing', async () => {
    const { wallets, recovery_user_id: id } = await made([email, tokenOf('alice')]);
    expect(id).toBe(await userOf('alice'));
    expect(await rowsOf('users')).toBe(1);
    const quorum = await operations.run('getKeyQuorum', { path: { key_quorum_id: wallets[0]!.owner_id! } });
    expect(quorum.body).toMatchObject({ user_ids: [id], authorization_threshold: 1 });
    expect(await sign(wallets[0]!, await keyOf(id))).toBe(true);
    expect(await events('wallet.recovered')).toEqual([]);
    // The same user again, whose accounts are linked by now.
    expect((await made([tokenOf('alice'), email])).recovery_user_id).toBe(id);
    const more = await create([tokenOf('alice'), { type: 'email', address: 'new@example.com' }]);
    expect(more).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  });

  test('all or nothing: a refusal leaves neither wallets nor users', async () => {
    await operations.run('createUser', { body: { linked_accounts: [email] } });
    const taken = await create([email]);
    expect(taken).toMatchObject({ status: 409, body: { code: 'linked_to_another_user' } });
    const both = await create([tokenOf('alice'), email]);
    expect(both).toMatchObject({ status: 409, body: { code: 'linked_to_another_user' } });
    const wallets = [
      { chain_type: 'ethereum', external_id: 'one' },
      { chain_type: 'ethereum', policy_ids: ['none'] },
    ];
    const invalid = await create([tokenOf('recovery')], wallets);
    expect(invalid).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringContaining('/wallets/1/policy_ids') },
    });
    expect(await create([email, { type: 'email', address: 'second@example.com' }])).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
    expect([await rowsOf('wallets'), await rowsOf('users'), await rowsOf('key_quorums')]).toEqual([0, 1, 0]);
    expect(await events('wallet.recovery_setup')).toEqual([]);
  });

  test('of concurrent repetitions with an external id one succeeds', async () => {
    const wallets = [{ chain_type: 'ethereum', external_id: 'one' }];
    const answers = await Promise.all(
      Array.from({ length: 4 }, (_, index) => create([tokenOf(`recovery-${index}`)], wallets)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    expect([await rowsOf('wallets'), await rowsOf('users')]).toEqual([1, 2]);
    const again = await create([tokenOf('recovery-5')], wallets);
    expect(again).toMatchObject({ status: 409, body: { code: 'resource_conflict' } });
  });
});
