import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { transform } from 'esbuild';
import type { TestProject } from 'vitest/node';
import { combinationsOf } from '../../src/tools/contract/contract-document.ts';
import { noteFigure } from '../figures/figure.ts';
import { readDocument, root, routesOf } from './documented.ts';
import {
  faultsOf,
  figures,
  type Judgement,
  judge,
  readGaps,
  readLedger,
  readRecords,
  writeLedger,
} from './ledger.ts';

/**
 * A vitest global setup: gives the processes of the run a folder to record answers in, and at the end merges them into
 * `coverage/ledger.json`. Every run fails on an answer that the document does not have; a run of every test file also
 * fails when it and the list of gaps disagree.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const document = readDocument();
  const folder = mkdtempSync(join(tmpdir(), 'custos-ledger-'));
  const recorder = readFileSync(join(import.meta.dirname, 'record-answers.ts'), 'utf8');
  // Processes that tests start load it before they begin: Node alone would need 100 ms to strip the types.
  const { code } = await transform(recorder, { loader: 'ts', format: 'esm' });
  writeFileSync(join(folder, 'record-answers.mjs'), code);
  writeFileSync(join(folder, 'routes.json'), JSON.stringify(routesOf(document)));
  process.env.TEST_LEDGER = folder;

  return async () => {
    const records = readRecords(folder);
    rmSync(folder, { recursive: true, force: true });
    // Of a file of which only some tests ran, the ledger knows more already.
    if (project.vitest.config.testNamePattern !== undefined) return;
    const { ran, isWhole, hasFailed } = await runOf(project);
    const before = Object.entries(isWhole ? {} : readLedger()).filter(([file]) => !ran.includes(file));
    const ledger = { ...Object.fromEntries(before), ...records };
    writeLedger(ledger);
    const documented = combinationsOf(document);
    const undocumented = judge(documented, records, []).undocumented;
    report({ unlisted: [], closed: [], undocumented });
    // The long variants exercise more, also of what is listed as a gap.
    if (!isWhole || process.env.TEST_LONG === '1') return;
    const lines = figures(documented, ledger);
    noteFigure(Object.fromEntries(lines.map((line) => line.split(/ {2,}/))));
    print(['', 'Ledger: what the tests exercise of the contract', ...lines]);
    if (hasFailed) {
      return print(['not compared with test/house/uncovered.txt: the tests that failed may exercise more']);
    }
    report({ ...judge(documented, ledger, readGaps()), undocumented: [] });
  };
}

function report(judgement: Judgement): void {
  const faults = faultsOf(judgement);
  if (faults.length === 0) return;
  process.exitCode = 1;
  print(faults);
}

interface Run {
  /** Relative to the root. */
  readonly ran: readonly string[];
  /** Whether every file was to run. */
  readonly isWhole: boolean;
  readonly hasFailed: boolean;
}

async function runOf({ vitest }: TestProject): Promise<Run> {
  const modules = vitest.state.getTestModules();
  const ran = modules.map(({ moduleId }) => relative(root, moduleId));
  const all = await vitest.globTestSpecifications([]);
  return {
    ran,
    isWhole: all.every(({ moduleId }) => ran.includes(relative(root, moduleId))),
    hasFailed: modules.some((module) => !module.ok()) || vitest.state.getUnhandledErrors().length > 0,
  };
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}
