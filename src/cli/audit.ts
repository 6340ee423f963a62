import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { ConfigError, readDatabaseConfig } from '../config/config.ts';
import { cellOption, dataOption } from './setting-options.ts';

interface AuditFlags {
  data?: string;
  cell?: string;
  json?: boolean;
  key?: string;
  witnessed?: string;
  proof?: string;
  record?: string;
  since?: string;
  keepDays?: number;
}

const examples = `
The files have the layout of C2SP tlog-tiles: checkpoint, tile/, tile/entries/,
and log.vkey, the key that the checkpoint is verified with. Get that key once
from the operator of the server and give it with --key: a person who can replace
the files can replace the one among them.

Examples:
  $ custos audit export /var/backups/audit
  $ custos audit verify /var/backups/audit --key "$(cat trusted.vkey)" \\
      --witnessed checkpoint-of-last-week
  $ custos audit trim /var/backups/audit --keep-days 90
  $ custos audit prove /var/backups/audit 42
  $ custos audit prove /var/backups/audit --since checkpoint-of-last-week
  $ custos audit verify --proof it.tlog-proof --record it.json \\
      --key "$(cat trusted.vkey)"

Exit codes: 0 success, 1 failure or a log that was changed, 2 invalid usage.`;

/**
 * Returns the command `custos audit …`, which exports and trims the audit log, and verifies exports and proves their
 * records without a server.
 */
export function auditCommand(): Command {
  const audit = new Command('audit')
    .description('export the audit log, trim it, verify an export, prove that a record is in it')
    .addHelpText('after', examples);
  audit.addCommand(
    new Command('export')
      .description('write the log to a folder, or add to it what is new')
      .argument('<folder>', 'an empty or absent folder, or one of an earlier export')
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action(async (folder: string, flags: AuditFlags) => {
        const config = readDatabaseConfig(flags);
        const { exportLog } = await import('../admin/audit/export-log.ts');
        const exported = await exportLog(config, resolve(folder));
        const { size, from, verifier_key } = exported;
        printResult(flags, exported, `${size} records, ${size - from} of them new\nkey  ${verifier_key}`);
      }),
  );
  audit.addCommand(
    new Command('trim')
      .description('export the log, verify the export, and delete old records from the database')
      .argument('<folder>', 'as of `export`; it is the only place of what is deleted')
      .requiredOption('--keep-days <count>', 'records that are younger stay in the database', wholeDays)
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action(async (folder: string, flags: AuditFlags) => {
        const config = readDatabaseConfig(flags);
        const { trimLog } = await import('../admin/audit/trim-log.ts');
        const trimmed = await trimLog(config, resolve(folder), flags.keepDays!);
        const { size, kept_from } = trimmed;
        printResult(
          flags,
          trimmed,
          `${size} records exported and verified; the database has those from ${kept_from} on`,
        );
      }),
  );
  audit.addCommand(
    new Command('verify')
      .description('verify every record of an export, or one record with its proof')
      .argument('[folder]', 'the export')
      .option('--key <key>', 'the key of the log; default: that of the export')
      .option('--witnessed <file>', 'an earlier checkpoint, which the log must continue')
      .option('--proof <file>', 'a proof of one record; needs no export')
      .option('--record <file>', 'that record')
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action((folder: string | undefined, flags: AuditFlags) => verify(folder, flags)),
  );
  audit.addCommand(
    new Command('prove')
      .description('prove that records are in an export, or that it continues an earlier checkpoint')
      .argument('<folder>', 'the export')
      .argument('[record]', 'the index of a record, or the id of a request')
      .option('--since <file>', 'an earlier checkpoint')
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action((folder: string, record: string | undefined, flags: AuditFlags) =>
        prove(folder, record, flags),
      ),
  );
  return audit;
}

function wholeDays(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected a number of days, at least 1');
}

async function verify(folder: string | undefined, flags: AuditFlags): Promise<void> {
  const { verifyLog, verifyProof } = await import('../admin/audit/verify-log.ts');
  if (flags.proof !== undefined) {
    const { verifierFor } = await import('../admin/audit/log-folder.ts');
    if (flags.record === undefined) throw invalid('--record: expected the record of --proof');
    if (flags.key === undefined && folder === undefined) throw invalid('--key: expected the key of the log');
    const verifier = verifierFor(resolve(folder ?? '.'), flags.key);
    const files = {
      proofFile: existing('--proof', flags.proof),
      recordFile: existing('--record', flags.record),
    };
    const fault = verifyProof(verifier, files);
    return report(flags, { faults: fault === undefined ? [] : [fault] }, 'the record is in the log');
  }
  if (folder === undefined) throw invalid('folder: expected an export, or --proof with --record');
  const witnessed = flags.witnessed === undefined ? undefined : textOf('--witnessed', flags.witnessed);
  const startedMs = performance.now();
  const verified = await verifyLog(resolve(folder), { key: flags.key, witnessed });
  const seconds = (performance.now() - startedMs) / 1000;
  const key = flags.key === undefined ? '\nnote: with the key of the export itself; see --key' : '';
  report(flags, verified, `${verified.size} records verified in ${seconds.toFixed(1)} s${key}`);
}

async function prove(folder: string, record: string | undefined, flags: AuditFlags): Promise<void> {
  const { proveConsistency, proveRecords } = await import('../admin/audit/prove-record.ts');
  if (flags.since !== undefined) {
    const proof = await proveConsistency(resolve(folder), textOf('--since', flags.since));
    return printResult(flags, proof, [`from ${proof.from} to ${proof.size}`, ...proof.hashes].join('\n'));
  }
  if (record === undefined)
    throw invalid('record: expected the index of a record or the id of a request, or --since');
  const proved = await proveRecords(resolve(folder), record);
  printResult(flags, proved, proved.map(({ record: text, proof }) => `${text}\n\n${proof}`).join('\n'));
}

function report(flags: AuditFlags, verified: { readonly faults: readonly string[] }, success: string): void {
  const isFine = verified.faults.length === 0;
  printResult(flags, verified, isFine ? success : verified.faults.join('\n'));
  if (!isFine) process.exitCode = 1;
}

function textOf(option: string, file: string): string {
  return readFileSync(existing(option, file), 'utf8');
}

function existing(option: string, file: string): string {
  if (existsSync(file)) return file;
  throw invalid(`${option}: expected a file, got \`${file}\``);
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid option:', [fault]);
}

function printResult(flags: AuditFlags, value: unknown, text: string): void {
  console.log(flags.json === true ? JSON.stringify(value) : text);
}
