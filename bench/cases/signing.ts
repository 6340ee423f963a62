import type { BenchCase } from '../bench-case.ts';
import { runInProcess } from '../measure/in-process.ts';
import { atLeast, atMost } from '../report.ts';

/** Encoding and signing a transaction, without a server. */
export const signing: BenchCase = {
  about: 'eth_signTransaction, codec and signature, without a server: viem to ours',
  needsPeers: true,
  async run(bench) {
    const args = ['--rounds', String(bench.rounds)];
    const { ours, viem, limit } = await runInProcess<Record<'ours' | 'viem' | 'limit', number>>(
      'sign-transaction.ts',
      args,
      bench.report,
    );
    return {
      tables: [
        {
          title: 'A signed transfer of a token, EIP-1559, CPU µs',
          columns: ['by', 'CPU µs', 'ratio'],
          rows: [
            ['ours', ours, 1],
            ['viem', viem, viem / ours],
            ['the hash and the signature alone', limit, limit / ours],
          ],
        },
      ],
      goals: [
        atLeast({ id: '-', what: 'eth_signTransaction: viem to ours', measured: viem / ours, limit: 8 }),
        atMost({
          id: '-',
          what: 'the same: ours to the hash and the signature alone',
          measured: ours / limit,
          limit: 1.35,
        }),
      ],
    };
  },
};
