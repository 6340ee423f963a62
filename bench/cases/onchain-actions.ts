import type { Wallet } from '../../src/generated/schemas.ts';
import type { BenchCase } from '../bench-case.ts';
import { ask } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { cpuOf, measureServers } from '../measure/rounds.ts';
import { atMost, roundsResult } from '../report.ts';
import { postRequest } from '../requests.ts';
import { launchCustos } from '../servers/custos.ts';
import type { Address } from '../servers/launch.ts';

const name = 'sandbox';
const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const RECIPIENT = '742d35cc6634c0532925a3b844bc9e7595f0beb0';
/** transfer(address, uint256), of a millionth of a dollar. */
const TRANSFER = `0xa9059cbb${RECIPIENT.padStart(64, '0')}${'1'.padStart(64, '0')}`;
const WALLETS = 16;

/** Requests of wallets that send a transaction each. A block includes it before the response. */
async function transfers(address: Address, transaction: object): Promise<LoadRequest[]> {
  const requests: LoadRequest[] = [];
  for (let count = 0; count < WALLETS; count += 1) {
    const created = postRequest(address, '/v1/wallets', { chain_type: 'ethereum' });
    const wallet = await ask<Wallet>(address, created);
    for (const given of [{ amount: '100' }, { asset: 'usdc', amount: '1000' }]) {
      const body = { chain: 'base', address: wallet.address, ...given };
      await ask(address, postRequest(address, '/_sandbox/faucet', body));
    }
    const body = { method: 'eth_sendTransaction', caip2: 'eip155:8453', params: { transaction } };
    requests.push(postRequest(address, `/v1/wallets/${wallet.id}/rpc`, body));
  }
  return requests;
}

/**
 * The cost of a transaction through the whole sandbox: the request, the gas estimate, the signature, the pool, the block
 * and the events.
 */
export const onchainActions: BenchCase = {
  about: 'eth_sendTransaction by wallets: the transfer of a token, whose bytecode runs, and of ether',
  needsPeers: false,
  async run(bench) {
    const flags = ['--record', 'off', '--confirm-after', '0'];
    const entry = {
      name,
      start: () => launchCustos({ command: 'sandbox', flags }),
      requestsTo: async (server: Address) => ({
        token: await transfers(server, { to: USDC, data: TRANSFER }),
        ether: await transfers(server, { to: `0x${RECIPIENT}`, value: '0x1' }),
      }),
    };
    const { measured } = await measureServers(bench, [entry], 4);
    const ratio = cpuOf(measured, name, 'token') / cpuOf(measured, name, 'ether');
    const goal = atMost('-', 'transfer of a token to one of ether, CPU', ratio, 1.5);
    return roundsResult(measured, (request) => request, [goal]);
  },
};
