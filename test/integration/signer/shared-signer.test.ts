import { expect, test } from 'vitest';
import { makeIds, systemEntropy } from '../../../src/adapters/runtime.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';
import { isLong } from '../../figures/figure.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { caip2, scriptChain } from '../../support/scripted-chain.ts';
import { behindProtocol } from '../../support/signer/behind-protocol.ts';
import { newOwner } from '../../support/signer/owner.ts';

// Servers of one host share a signer that bounds for how many transactions it signs a request. They outrun each other:
// a nonce may be one's that has signed for it before the others.

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';

test.each(isLong ? [1, 3] : [1])(
  'four servers send from a wallet at once, with %i for each request',
  async (most) => {
    const owner = newOwner();
    const key = owner.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    const chain = scriptChain();
    let shared: KeyStore | undefined;
    await using first = await openOperations('postgres', {
      chains: chain,
      replaceKeyStore: (keyStore) => (shared ??= behindProtocol((task) => task)(keyStore)),
      signaturesPerRequest: most,
      // Nothing gives up because the machine is busy.
      mutexWaitMs: 80_000,
    });
    const servers: TestOperations[] = [first];
    await using others = new AsyncDisposableStack();
    for (let n = 0; n < 3; n += 1) {
      const other = others.use(await first.anotherProcess());
      Object.assign(other.services, { ids: makeIds(systemEntropy) });
      servers.push(other);
    }
    const body = { chain_type: 'ethereum', owner: { public_key: owner.publicKey } };
    const wallet = (await first.run('createWallet', { body })).body as Wallet;
    const sends = (server: TestOperations, value: number) =>
      server.run('walletRpc', {
        path: { wallet_id: wallet.id },
        body: {
          ...{ method: 'eth_sendTransaction', caip2 },
          params: { transaction: { to: receiver, value: `0x${value.toString(16)}` } },
        },
        signWith: [key],
      });
    const values = Array.from({ length: 40 }, (_, index) => index + 1);
    const results = await Promise.all(values.map((value) => sends(servers[value % servers.length]!, value)));
    expect(
      results.map(({ status, body }) => (status === 200 ? 200 : (body as { error: string }).error)),
    ).toEqual(values.map(() => 200));
    const nonces = chain.broadcasts.map(({ transaction }) => Number(transaction.nonce));
    expect(new Set(nonces).size).toBe(values.length);
  },
);
