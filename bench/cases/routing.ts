import type { BenchCase } from '../bench-case.ts';
import { runInProcess } from '../measure/in-process.ts';
import { atMost } from '../report.ts';

interface LookUp {
  readonly id: string;
  readonly fewOperations: number;
  readonly allOperations: number;
  /** Nanoseconds. */
  readonly few: number;
  readonly all: number;
}

/** Whether finding an operation slows down with the number of operations. */
export const routing: BenchCase = {
  about: 'finding an operation among 10 and among all (G4)',
  needsPeers: false,
  async run(bench) {
    bench.report('looking operations up');
    const lookUps = await runInProcess<LookUp[]>('route-lookups.ts', [], bench.report);
    const total = (size: 'few' | 'all'): number => lookUps.reduce((sum, lookUp) => sum + lookUp[size], 0);
    const slowest = Math.max(...lookUps.map(({ all }) => all));
    const [{ fewOperations, allOperations } = { fewOperations: 0, allOperations: 0 }] = lookUps;
    return {
      tables: [
        {
          title: 'Finding an operation, CPU ns',
          columns: ['operation', `of ${fewOperations}`, `of ${allOperations}`, 'ratio'],
          rows: lookUps.map(({ id, few, all }) => [id, few, all, all / few]),
        },
      ],
      goals: [
        atMost({
          id: 'G4',
          what: `routing: ${allOperations} operations to ${fewOperations}, all look-ups together`,
          measured: total('all') / total('few'),
          limit: 1.2,
        }),
        atMost({ id: 'G4', what: 'routing: one look-up', measured: slowest / 1000, limit: 2, unit: 'µs' }),
      ],
    };
  },
};
