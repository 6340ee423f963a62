import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { CHOICES_PATH, renderChoices } from './choices/render-choices.ts';
import { type Contract, contracts } from './contracts.ts';
import { findDivergences } from './divergences/find-divergences.ts';
import {
  DIVERGENCES_MODULE_PATH,
  DIVERGENCES_PATH,
  renderDivergences,
  renderDivergencesModule,
} from './divergences/render-divergences.ts';
import { ContractError } from './document.ts';
import { POLICY_FIELDS_PATH, renderPolicyFields } from './emit-policy-fields.ts';
import { generateContract } from './generate.ts';
import { findDrift, writeOutput } from './output.ts';
import { PAGES_PATH, renderPages } from './pages/render-pages.ts';
import { CONFIG_SCHEMA_PATH, renderConfigSchema, renderSettings, SETTINGS_PATH } from './render-settings.ts';
import { scaffoldHandlers } from './scaffold-handler.ts';

const HELP = `usage: npm run generate [-- options]

Reads the contracts in openapi/ and generates the bundled documents, types, operation tables, registries,
validators, and a stub for each operation without a handler.
Also writes the index of CHOICE comments, docs/decisions/choices.md, the page of divergences,
docs/divergences.md, the page of settings, docs/reference/settings.md, the schema of custos.config.json,
openapi/config.schema.json, the fields of policies,
src/sandbox/generated/policy-fields.ts, and the pages at /docs, src/generated/pages.ts.

  --check        write nothing; fail when a generated file is out of date
  --allow-todo   tolerate placeholders (TODO) and invalid examples, and print their number
  --help         print this help

exit codes: 0 success, 1 the contract is invalid or a file is out of date, 2 invalid usage`;

const ROOT = join(import.meta.dirname, '..');

interface Options {
  readonly check: boolean;
  readonly allowTodo: boolean;
}

/** Returns the number of files that are out of date (with `check`), otherwise 0. */
async function run(contract: Contract, { check, allowTodo }: Options): Promise<number> {
  if (contract.sources(ROOT).length === 0) {
    console.log(`${contract.name}: no contract yet, nothing to do`);
    return 0;
  }
  const generated = await generateContract(contract, ROOT, { allowTodo });
  if (generated.unfinished.length > 0) {
    console.log(`${contract.name}: ${generated.unfinished.length} placeholders and invalid examples`);
  }
  const count = `${generated.operations.length} operations`;
  if (check) {
    const drift = findDrift(contract, ROOT, generated);
    for (const line of drift) console.error(line);
    console.log(`${contract.name}: ${count}, ${drift.length} files out of date`);
    return drift.length;
  }
  const changed = writeOutput(contract, ROOT, generated);
  const stubs = scaffoldHandlers(contract, ROOT, generated.operations);
  for (const path of changed) console.log(`wrote ${path}`);
  for (const id of stubs) console.log(`wrote a stub of ${id}`);
  console.log(`${contract.name}: ${count}, ${changed.length} files changed, ${stubs.length} stubs written`);
  return 0;
}

/**
 * Writes a file that is not generated from a contract, or compares it (with `check`). Returns whether the file is out
 * of date.
 */
function runFile({ check }: Options, relativePath: string, content: string): boolean {
  const path = join(ROOT, relativePath);
  if (content === readOrEmpty(path)) return false;
  if (check) {
    console.error(`${relativePath}: does not match its sources`);
    return true;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  console.log(`wrote ${relativePath}`);
  return false;
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      check: { type: 'boolean', default: false },
      'allow-todo': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  return values.help ? undefined : { check: values.check, allowTodo: values['allow-todo'] };
}

async function main(): Promise<number> {
  let options: Options | undefined;
  try {
    options = readOptions();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
  if (options === undefined) {
    console.log(HELP);
    return 0;
  }
  try {
    let stale = 0;
    for (const contract of contracts) stale += await run(contract, options);
    if (runFile(options, CHOICES_PATH, renderChoices(ROOT))) stale += 1;
    const divergences = findDivergences(ROOT);
    if (runFile(options, DIVERGENCES_PATH, renderDivergences(divergences))) stale += 1;
    if (runFile(options, DIVERGENCES_MODULE_PATH, renderDivergencesModule(divergences))) stale += 1;
    if (runFile(options, SETTINGS_PATH, renderSettings())) stale += 1;
    if (runFile(options, CONFIG_SCHEMA_PATH, renderConfigSchema(ROOT))) stale += 1;
    if (runFile(options, POLICY_FIELDS_PATH, renderPolicyFields(ROOT))) stale += 1;
    if (runFile(options, PAGES_PATH, await renderPages(ROOT))) stale += 1;
    if (stale > 0) console.error('run `npm run generate` and commit the changes');
    return stale > 0 ? 1 : 0;
  } catch (error) {
    if (!(error instanceof ContractError)) throw error;
    console.error(error.message);
    return 1;
  }
}

process.exitCode = await main();
