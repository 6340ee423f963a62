import { setTimeout as pause } from 'node:timers/promises';
import { toHex } from 'viem';
import { expect, test } from 'vitest';
import { startAnvil } from '../../support/anvil.ts';
import { call } from '../../support/call.ts';
import { startLyingNode } from '../../support/nodes/lying-node.ts';
import { startSandbox } from '../../support/sandbox.ts';

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const hangs = 'eip155:8453';
const works = 'eip155:1';
// More than the transactions that one batch claims.
const OPEN = 25;

test('a node that hangs with many open transactions does not delay those of another chain', async () => {
  await using anvil = await startAnvil(8453);
  await using node = await startLyingNode(anvil.url);
  await using sandbox = await startSandbox({ rpc: [{ caip2: hangs, urls: [node.url], confirmations: 0 }] });
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await anvil.ask('anvil_setBalance', wallet.address, toHex(10n ** 18n));
  await sandbox.chains.fund(works, { address: wallet.address, tokenAddress: null, rawAmount: 10n ** 18n });
  const send = async (caip2: string): Promise<string> => {
    const body = {
      method: 'eth_sendTransaction',
      caip2,
      params: { transaction: { to: receiver, value: 1 } },
    };
    const path = { wallet_id: wallet.id };
    const { body: sent } = await call(sandbox, 'walletRpc', { path, body: body as never });
    return (sent.data as unknown as { transaction_id: string }).transaction_id;
  };
  const statusOf = async (id: string) =>
    (await call(sandbox, 'getTransaction', { path: { transaction_id: id } })).body.status;

  const waiting: string[] = [];
  for (let number = 0; number < OPEN; number += 1) waiting.push(await send(hangs));
  // Less overdue than all of them.
  sandbox.clock.advance(500);
  const other = await send(works);
  const released = Promise.withResolvers<undefined>();
  let asked = 0;
  node.lie = () => {
    asked += 1;
    return released.promise;
  };
  const beganMs = performance.now();
  // By the loops of the jobs, which run by the time of the machine, as in production.
  sandbox.clock.advance(30_000);
  await sandbox.chains.mine(works, 1);
  while (asked === 0 || (await statusOf(other)) === 'broadcasted') await pause(20);
  // The node has answered nothing, and a call of it waits 5 s.
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  expect(await statusOf(waiting[0]!)).toBe('broadcasted');
  released.resolve(undefined);
});
