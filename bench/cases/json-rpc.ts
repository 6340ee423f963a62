import type { BenchCase } from '../bench-case.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { cpuOf, measureServers } from '../measure/rounds.ts';
import { atMost, roundsResult } from '../report.ts';
import { launchCustos } from '../servers/custos.ts';

const name = 'sandbox';
const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
/** balanceOf(address) */
const DATA = `0x70a08231${'742d35cc6634c0532925a3b844bc9e7595f0beb0'.padStart(64, '0')}`;

function rpc(method: string, params: readonly unknown[]): LoadRequest {
  return {
    method: 'POST',
    path: '/_sandbox/rpc/base',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    status: 200,
  };
}

/** The cost of a contract call by JSON-RPC, and of a call that runs no bytecode. */
export const jsonRpc: BenchCase = {
  about: 'eth_call of balanceOf, eth_chainId: the JSON-RPC of a simulated chain',
  needsPeers: false,
  async run(bench) {
    const requests = {
      eth_call: [rpc('eth_call', [{ to: USDC, data: DATA }, 'latest'])],
      eth_chainId: [rpc('eth_chainId', [])],
    };
    const start = () => launchCustos({ command: 'sandbox', flags: ['--record', 'off'] });
    const { measured } = await measureServers(bench, [{ name, start, requestsTo: () => requests }]);
    const what = 'eth_call of balanceOf, CPU: 2,000 a second on one core';
    const goal = atMost('-', what, cpuOf(measured, name, 'eth_call'), 500, 'µs');
    return roundsResult(measured, (request) => request, [goal]);
  },
};
