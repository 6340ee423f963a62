import { expect, test } from 'vitest';
import { sourceFiles } from './source-files.ts';

// Promises kept by hand, and why a rejected one does not stay.
const keptByHand: Readonly<Record<string, string>> = {
  'src/engine/load-once.ts: loaded': 'the one place for all others',
  'src/adapters/chain-rpc/nodes.ts: checked':
    'cleared after an outage; a node of the wrong chain stays refused',
  'src/keys/budget-journal.ts: writing': 'never rejects, and is cleared at its end',
  'src/server/server.ts: stopped': 'a server stops once',
  'src/jobs/attempt-journal.ts: writing': 'never rejects, and is cleared at its end',
  'src/observability/gauges.ts: current': 'never rejects, and is cleared at its end',
  'src/storage/postgres-dialect.ts: checking': 'forgotten when it ends, and it catches its failure',
};

test('a promise is cached by `loadOnce`, which forgets the ones that were rejected', () => {
  const found = sourceFiles('src/**/*.ts').flatMap(({ path, text }) =>
    [...text.matchAll(/\blet (\w+)\b[^=\n]*?: Promise<.*\| undefined;/g)]
      .filter(([, name]) => new RegExp(`\\b${name} \\?\\?= `).test(text))
      .map(([, name]) => `${path}: ${name}`),
  );
  expect(found.sort()).toEqual(Object.keys(keptByHand).sort());
});
