import { generateKeyPairSync } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { updateApp } from '../../../src/domain/access/apps/app.ts';
import { addVault } from '../../../src/domain/money/earn/earn-vault.ts';
import { chainNamed } from '../../../src/engine/assets/known-chains.ts';
import type { AnyChain } from '../../../src/ports/chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

// The responses when an external service is unreachable or not configured.
const refused = (): Promise<never> => Promise.reject(new Error('connect ECONNREFUSED'));

/** A chain on which every query fails. */
function downChain(caip2: string): AnyChain {
  const known = { kind: 'evm', caip2 };
  return new Proxy(known, {
    get: (target, name) => (name in target ? target[name as keyof typeof target] : refused),
  }) as AnyChain;
}

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  beforeAll(async () => {
    operations = await openOperations(kind, { chains: { find: downChain }, jwks: { keys: refused } });
  });
  afterAll(() => operations[Symbol.asyncDispose]());

  test('an unreachable chain makes balances and transfers unavailable, and the error names the chain', async () => {
    const { body: wallet } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    const path = { wallet_id: (wallet as { id: string }).id };
    const { body: account } = await operations.run('createAccount', {
      body: { wallet_ids: [path.wallet_id] },
    });
    const unavailable = (chain: string) => ({
      status: 503,
      body: { error: `the chain \`${chain}\` could not be reached` },
    });
    const query = { chain: 'base', asset: 'eth' };
    expect(await operations.run('getWalletBalance', { path, query })).toEqual(unavailable('base'));
    expect(await operations.run('getWalletTransactions', { path, query })).toEqual(unavailable('base'));
    const accountPath = { account_id: (account as { id: string }).id };
    expect(await operations.run('getAccountBalance', { path: accountPath })).toMatchObject({
      status: 503,
      body: { error: expect.stringMatching(/^the chain `\w+` could not be reached$/) },
    });
  });

  test('vaults on an unreachable chain cannot be read, and nothing is signed for them', async () => {
    const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    const wallet = body as { id: string };
    const vault = await operations.database.orm.em.fork().transactional((em) => {
      const context = operations.context(em as SqlEntityManager);
      const address = '0x81bA25F06d0c7242D513A7472219a65c4646631D';
      const asset = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
      return addVault(
        context,
        {
          ...{ appId: operations.app.id, provider: 'aave', name: undefined, chain: chainNamed('base')! },
          ...{ address, adminWalletId: wallet.id, feeBps: 0 },
        },
        { assetAddress: asset, assetSymbol: 'USDC', assetDecimals: 6 },
      );
    });
    const path = { wallet_id: wallet.id };
    const unavailable = { status: 503, body: { error: 'the chain `base` could not be reached' } };
    const query = { vault_id: vault.id };
    expect(await operations.run('getEthereumEarnVault', { path: query })).toEqual(unavailable);
    expect(await operations.run('getEthereumEarnPosition', { path, query })).toEqual(unavailable);
    const failed = { status: 400, body: { code: 'transaction_broadcast_failure' } };
    const amount = { vault_id: vault.id, amount: '1' };
    expect(await operations.run('depositEthereumEarn', { path, body: amount })).toMatchObject(failed);
    expect(await operations.run('withdrawEthereumEarn', { path, body: amount })).toMatchObject(failed);
    expect(await operations.run('collectEthereumEarnFees', { path, body: query })).toMatchObject(failed);
    const none = { status: 400, body: { code: 'not_supported' } };
    const chain = { chain: 'base' };
    expect(await operations.run('claimEthereumEarnIncentive', { path, body: chain })).toMatchObject(none);
    const listed = await operations.run('getEthereumEarnIncentiveRewards', { path, query: chain });
    expect(listed).toMatchObject(none);
  });

  test("without the key set of the app's own login no user is authenticated", async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const jwt_auth = { jwks_url: 'https://login.example.com/jwks.json', user_id_claim: 'sub', audiences: [] };
    await operations.database.orm.em.fork().transactional(async (em) => {
      const context = operations.context(em as SqlEntityManager);
      await updateApp(context, operations.app.id, { settings: { jwt_auth } });
    });
    const user_jwt = await new SignJWT({ sub: 'ann' })
      .setProtectedHeader({ alg: 'RS256' })
      .setExpirationTime(operations.clock.nowMs / 1000 + 60)
      .sign(privateKey);
    const bindings = [{ type: 'intent', intentId: 'fmfdj6yqly31huorjqzq38zc' }];
    for (const [operation, body] of [
      ['authenticateUserSigner', { user_jwt }],
      ['authenticateWallets', { user_jwt }],
      ['authenticateWalletIntents', { user_jwt, bindings }],
    ] as const) {
      expect(await operations.run(operation, { body }), operation).toEqual({
        status: 400,
        body: { error: 'the JWKS document could not be fetched', code: 'failed_to_fetch_jwks_uri_document' },
      });
    }
  });

  test('no wallet is opened at a custodian that is not configured', async () => {
    const body = { provider: 'bridge', provider_user_id: 'cust_8f14e45fceea167a' };
    expect(await operations.run('createCustodialWallet', { body })).toEqual({
      status: 400,
      body: { error: '/provider: the custodian `bridge` is not configured here', code: 'not_supported' },
    });
    const { body: account } = await operations.run('createAccount', {
      body: { wallets_configuration: [{ chain_type: 'ethereum' }] },
    });
    const wallets_configuration = [{ chain_type: 'ethereum', custody: body }];
    const path = { account_id: (account as { id: string }).id };
    for (const answer of [
      await operations.run('createAccount', { body: { wallets_configuration } }),
      await operations.run('updateAccount', { path, body: { wallets_configuration } }),
    ]) {
      expect(answer).toEqual({
        status: 400,
        body: {
          error: '/wallets_configuration/0/custody/provider: the custodian `bridge` is not configured here',
          code: 'not_supported',
        },
      });
    }
  });
});
