import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { caip2, type ScriptedChain, scriptChain } from '../../support/scripted-chain.ts';
import { behindProtocol } from '../../support/signer/behind-protocol.ts';
import { lostAnswers } from '../../support/signer/lost-answers.ts';
import { newOwner } from '../../support/signer/owner.ts';

// A signer that signs each request for one transaction, behind an honest server.

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const { loseNext, losing } = lostAnswers();
afterEach(() => loseNext(0));

describe.each(databaseKinds)('on %s', (kind) => {
  const owner = newOwner();
  const key = owner.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  let chain: ScriptedChain;
  let server: TestOperations;
  let wallet: Wallet;

  beforeAll(async () => {
    chain = scriptChain();
    server = await openOperations(kind, {
      chains: chain,
      replaceKeyStore: (keyStore) => losing(behindProtocol((task) => task)(keyStore)),
      signaturesPerRequest: 1,
    });
    const body = { chain_type: 'ethereum', owner: { public_key: owner.publicKey } };
    wallet = (await server.run('createWallet', { body })).body as Wallet;
  });
  afterAll(() => server[Symbol.asyncDispose]());

  // Without an expiry, so the same value is the same request.
  const sends = (value: number) =>
    server.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        ...{ method: 'eth_sendTransaction', caip2 },
        params: { transaction: { to: receiver, value: `0x${value.toString(16)}` } },
      },
      signWith: [key],
    });

  test('a request whose answers were lost is sent once, with the nonce that it was signed for', async () => {
    const sent = chain.broadcasts.length;
    loseNext(4);
    for (let n = 0; n < 4; n += 1)
      await expect(sends(1)).rejects.toMatchObject({ name: 'SignerUnavailableError' });
    expect(chain.broadcasts).toHaveLength(sent);
    await expect(sends(1)).resolves.toMatchObject({ status: 200 });
    expect(chain.broadcasts).toHaveLength(sent + 1);
  });

  test('a request that was sent is not signed for another transaction', async () => {
    await expect(sends(2)).resolves.toMatchObject({ status: 200 });
    const sent = chain.broadcasts.length;
    await expect(sends(2)).resolves.toMatchObject({
      status: 400,
      body: {
        code: 'transaction_broadcast_failure',
        error: expect.stringContaining('already signed for a transaction;'),
      },
    });
    expect(chain.broadcasts).toHaveLength(sent);
    await expect(sends(3)).resolves.toMatchObject({ status: 200 });
  });

  test('requests of the owner at the same time are all sent, with a nonce each', async () => {
    const sent = chain.broadcasts.length;
    const values = Array.from({ length: 12 }, (_, index) => 100 + index);
    const results = await Promise.all(values.map(sends));
    expect(results.map(({ status }) => status)).toEqual(values.map(() => 200));
    const nonces = chain.broadcasts.slice(sent).map(({ transaction }) => Number(transaction.nonce));
    expect(new Set(nonces).size).toBe(values.length);
  });

  test('a request that loses its nonce to another one of the owner is signed for the next', async () => {
    loseNext(1);
    await expect(sends(200)).rejects.toMatchObject({ name: 'SignerUnavailableError' });
    await expect(sends(201)).resolves.toMatchObject({ status: 200 });
    await expect(sends(200)).resolves.toMatchObject({ status: 200 });
  });
});
