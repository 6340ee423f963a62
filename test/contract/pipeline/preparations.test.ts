import { generateKeyPairSync } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { SignJWT } from 'jose';
import { afterEach, describe, expect, test } from 'vitest';
import { updateApp } from '../../../src/domain/access/apps/app.ts';
import { checkAppSettings } from '../../../src/domain/access/apps/app-settings.ts';
import type { User, Wallet } from '../../../src/generated/schemas.ts';
import type { AnyChain } from '../../../src/ports/chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { type OperationsOptions, openOperations, type TestOperations } from '../../support/run-operations.ts';

// External calls are made before the transaction, so that a slow response does not block a connection.

const login = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const MANY = 20;

/** A response that the test releases. */
function gate(): { readonly opened: Promise<void>; open(): void; waiting: number } {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  return { opened, open, waiting: 0 };
}

describe.each(databaseKinds)('on %s, with two connections', (kind) => {
  let operations: TestOperations;
  afterEach(() => operations[Symbol.asyncDispose]());

  async function open(options: OperationsOptions): Promise<void> {
    operations = await openOperations(kind, { poolSize: 2, ...options });
  }

  /** A user of the app's own login, with a wallet. */
  async function addAlice(): Promise<void> {
    await operations.database.orm.em.fork().transactional(async (em) => {
      const context = operations.context(em as SqlEntityManager);
      const settings = checkAppSettings(
        { jwt_auth: { jwks_url: 'https://login.example/jwks.json' } },
        context,
      );
      await updateApp(context, operations.app.id, { settings });
    });
    const { body: user } = await operations.run('createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'alice' }] },
    });
    const owner = { user_id: (user as User).id };
    await operations.run('createWallet', { body: { chain_type: 'ethereum', owner } });
  }

  const aliceToken = () =>
    new SignJWT({ sub: 'alice' })
      .setProtectedHeader({ alg: 'ES256', kid: 'login' })
      .setExpirationTime(operations.clock.nowMs / 1000 + 60)
      .sign(login.privateKey);

  const loginKeys = [{ ...login.publicKey.export({ format: 'jwk' }), kid: 'login' }];

  test.each(['authenticateWallets', 'authenticateUserSigner'] as const)(
    `${MANY} concurrent logins by %s all get a response`,
    async (operation) => {
      await open({ jwks: { keys: async () => loginKeys } });
      await addAlice();
      const userJwt = await aliceToken();
      const answers = await Promise.all(
        Array.from({ length: MANY }, (_, index) =>
          operations.run(operation, { body: { user_jwt: index % 2 === 0 ? userJwt : 'not.a.token' } }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(
        Array.from({ length: MANY }, (_, index) => (index % 2 === 0 ? 200 : 401)),
      );
    },
  );

  test('a login with a slow key set does not delay other requests', async () => {
    const jwks = gate();
    await open({
      jwks: {
        async keys() {
          jwks.waiting += 1;
          await jwks.opened;
          return loginKeys;
        },
      },
    });
    await addAlice();
    const body = { user_jwt: await aliceToken() };
    const logins = Array.from({ length: MANY }, () => operations.run('authenticateWallets', { body }));
    await expect.poll(() => jwks.waiting).toBe(MANY);
    expect(await operations.run('createWallet', { body: { chain_type: 'solana' } })).toMatchObject({
      status: 200,
    });
    jwks.open();
    expect((await Promise.all(logins)).map(({ status }) => status)).toEqual(Array(MANY).fill(200));
  });

  test('a slow chain delays only requests that need it', async () => {
    const chain = gate();
    const asked = {
      kind: 'evm',
      caip2: 'eip155:1',
      async nonce() {
        chain.waiting += 1;
        await chain.opened;
        return 7n;
      },
    } as Partial<AnyChain> as AnyChain;
    await open({ chains: { find: (caip2) => (caip2 === asked.caip2 ? asked : undefined) } });
    const { body: made } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    const path = { wallet_id: (made as Wallet).id };
    const params = { chain_id: 1, contract: `0x${'11'.repeat(20)}` };
    const body = { method: 'eth_sign7702Authorization', params };
    const signatures = Array.from({ length: MANY }, () => operations.run('walletRpc', { path, body }));
    await expect.poll(() => chain.waiting).toBe(MANY);
    expect(await operations.run('getWallet', { path })).toMatchObject({ status: 200 });
    chain.open();
    const answers = await Promise.all(signatures);
    expect(answers.map(({ body: answer }) => answer)).toEqual(
      Array(MANY).fill({
        method: 'eth_sign7702Authorization',
        data: { authorization: expect.objectContaining({ nonce: 7 }) },
      }),
    );
  });
});
