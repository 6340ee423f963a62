import { type OperationDescriptor, type OperationId, operations } from '../../src/generated/operations.ts';
import { createRouteIndex } from '../../src/server/route-index.ts';

// Measures the route index alone, in its own process. Reports nanoseconds per look-up to the parent process.

const ITERATIONS = 100_000;
const REPETITIONS = 9;

const measured: readonly OperationId[] = [
  'createWallet',
  'getWallet',
  'walletRpc',
  'createUser',
  'getPolicyRule',
];
const few: readonly OperationId[] = [
  ...measured,
  'listWallets',
  'updateWallet',
  'getUser',
  'createPolicy',
  'getPolicy',
];

function nanosecondsPerLookUp(table: readonly OperationDescriptor[], id: OperationId): number {
  const index = createRouteIndex(table);
  const { method, path } = operations[id];
  const target = path.replaceAll(/\{[^}]+\}/g, 'fmfdj6yqly31huorjqzq38zc');
  let best = Number.POSITIVE_INFINITY;
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    const before = process.cpuUsage();
    for (let at = 0; at < ITERATIONS; at += 1) {
      if (index.find(method, target)?.operation.id !== id) throw new Error(`${id} is not found at ${target}`);
    }
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, ((user + system) * 1000) / ITERATIONS);
  }
  return best;
}

const all = Object.values(operations);
const some = few.map((id) => operations[id]);
process.send?.(
  measured.map((id) => ({
    id,
    fewOperations: some.length,
    allOperations: all.length,
    few: nanosecondsPerLookUp(some, id),
    all: nanosecondsPerLookUp(all, id),
  })),
);
process.disconnect?.();
