import type { BenchCase } from '../bench-case.ts';
import { ask, requireContract } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, busyOthersOf, noiseTable, roundsTable } from '../report.ts';
import { getRequest, postRequest } from '../requests.ts';
import { createWallets } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import type { Address } from '../servers/launch.ts';

const name = 'custos sandbox in memory';
/** Requests of one wallet wait for each other: each takes the next nonce. */
const WALLETS = 16;
const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const recipient = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const [transfer, swap, deposit] = ['transfer', 'swap', 'earn deposit'] as const;
type Action = typeof transfer | typeof swap | typeof deposit;

/** What actions cost that are several calls, simulated before they are signed, relative to one call. */
export const onchainActions: BenchCase = {
  about: 'a swap and an earn deposit on simulated chains, to a transfer',
  needsPeers: false,
  async run(bench) {
    bench.report(`starting ${name}`);
    // Blocks include what is sent at once, so that no queue of pending transactions grows.
    const server = await launchCustos({ command: 'sandbox', flags: ['--confirm-after', '0'] });
    try {
      bench.report('funding wallets');
      const requests = await requestsTo(server);
      await requireContract(server, 'transferFromWallet', requests[transfer][0] as LoadRequest);
      await requireContract(server, 'executeWalletSwap', requests[swap][0] as LoadRequest);
      await requireContract(server, 'depositEthereumEarn', requests[deposit][0] as LoadRequest);
      const measured = await measureRounds([{ name, server, requests }], { ...bench, connections: 8 });
      const cpu = (request: string): number => leastCpu(pick(measured, name, request));
      return {
        tables: [
          ...[transfer, swap, deposit].map((request) => roundsTable(request, measured, request)),
          noiseTable(measured),
        ],
        goals: [swap, deposit].map((request) =>
          atMost({
            id: '-',
            what: `${request} to a transfer, CPU`,
            measured: cpu(request) / cpu(transfer),
            // A swap, or a deposit, is an approval and a second transaction.
            limit: 2.5,
          }),
        ),
        busyOthers: busyOthersOf(measured),
      };
    } finally {
      await server.stop();
    }
  },
};

async function requestsTo(address: Address): Promise<Record<Action, LoadRequest[]>> {
  const control = <Body>(path: string, body: object): Promise<Body> =>
    ask<Body>(address, postRequest(address, `/_sandbox/${path}`, body));
  const ids = await createWallets(address, WALLETS, 'ethereum');
  for (const id of ids) {
    const { address: account } = await ask<{ address: string }>(
      address,
      getRequest(address, `/v1/wallets/${id}`),
    );
    await control('faucet', { chain: 'base', address: account, amount: '1000' });
    await control('faucet', { chain: 'base', address: account, asset: 'usdc', amount: '100000' });
  }
  const { id: vault_id } = await control<{ id: string }>(`apps/${address.appId}/earn_vaults`, {
    ...{ chain: 'base', asset: 'usdc', provider: 'aave', apy_bps: 500, admin_wallet_id: ids[0] },
  });
  const to = (operation: string, body: object): LoadRequest[] =>
    ids.map((id) => postRequest(address, `/v1/wallets/${id}/${operation}`, body));
  return {
    [transfer]: to('transfer', {
      source: { asset: 'usdc', amount: '0.01', chain: 'base' },
      destination: { address: recipient },
    }),
    [swap]: to('swap', {
      source: { asset_address: usdc, caip2 },
      ...{ destination: { asset_address: 'native' }, base_amount: '1000', slippage_bps: 1000 },
    }),
    [deposit]: to('earn/ethereum/deposit', { vault_id, amount: '0.01' }),
  };
}
