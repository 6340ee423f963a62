import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve, sep } from 'node:path';
import { Command, Option } from 'commander';
import { ConfigError } from '../../config/config.ts';
import { UnmeasurableError } from '../../config/start-error.ts';
import type { SandboxClient } from '../../tools/client/sandbox-client.ts';
import type { Exchange } from '../../tools/coverage/archive.ts';
import type { Scope, Threshold } from '../../tools/coverage/judge.ts';
import type { Measured, Recorded } from '../../tools/coverage/measure.ts';
import {
  addSandboxClientOptions,
  collect,
  invalidOption,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { screenOf } from '../shell/terminal.ts';
import { readReportTargets, writeReports } from './report-options.ts';

interface CoverageFlags extends SandboxClientFlags {
  har?: string[];
  format?: string[];
  failUnder?: string[];
  baseline?: string;
  updateBaseline?: boolean;
  of: Scope;
}

const formats = ['text', 'json', 'html', 'junit', 'sarif', 'github'] as const;

const examples = `
Examples:
  $ custos coverage
        of the sandbox that runs here
  $ custos coverage --har recorded.har --format html=coverage.html --format text
  $ custos coverage --fail-under errors=40 --fail-under operations=10
        fails below 40 % of the errors of the operations that were called
  $ custos coverage --baseline uncovered.txt \\
      --update-baseline writes the list, or deletes what is covered by now
  $ custos coverage --format github >> "$GITHUB_STEP_SUMMARY"

Statuses, errors, requests and responses are those of the operations that were
called; with --of contract, those of all operations. --fail-under takes a share
of all of them, or of: operations, statuses, errors, requests, responses,
events, acknowledged, outcomes. A sandbox keeps its latest 10,000 requests.

Exit codes: 0 sufficient, 1 not sufficient, 2 invalid usage, 3 nothing could be
measured.`;

/**
 * Returns the command `custos coverage`, which shows which parts of the API document recorded requests have covered.
 */
export function coverageCommand(): Command {
  return addSandboxClientOptions(
    new Command('coverage')
      .description('report what the requests to a sandbox, or of a HAR file, used of the contract')
      .option('--har <file>', 'an HTTP Archive instead of a running sandbox; repeatable', collect)
      .option('--format <format[=file]>', `${formats.join(', ')}; repeatable (default: text)`, collect)
      .option('--fail-under <percent>', 'the least coverage, as `80` or `operations=80`; repeatable', collect)
      .addOption(
        new Option('--of <scope>', 'what is counted: the operations that were called, or all of them')
          .choices(['called', 'contract'])
          .default('called'),
      )
      .option('--baseline <file>', 'fail unless exactly what this file lists is not covered')
      .option(
        '--update-baseline',
        'write the file if there is none; otherwise delete what is covered from it',
      ),
  )
    .addHelpText('after', examples)
    .action(async (flags: CoverageFlags) => {
      const targets = readReportTargets(flags.format ?? [flags.json === true ? 'json' : 'text'], formats);
      const thresholds = (flags.failUnder ?? []).map(readThreshold);
      if (flags.updateBaseline === true && flags.baseline === undefined) {
        throw invalidOption('--update-baseline: expected --baseline as well');
      }
      const [{ measure }, { contractDocument, renderCoverage }, { judgeCoverage }] = await Promise.all([
        import('../../tools/coverage/measure.ts'),
        import('../../tools/coverage/report.ts'),
        import('../../tools/coverage/judge.ts'),
      ]);
      const measured = measure(contractDocument(), await record(flags));
      if (measured.requests === measured.unknownRequests) {
        throw new UnmeasurableError('expected requests to operations of the contract, found none');
      }
      const baseline = await readBaseline(flags, measured);
      const verdict = judgeCoverage(measured, { thresholds, baseline, scope: flags.of });
      const { paint } = screenOf();
      writeReports(targets, (format, isFile) =>
        renderCoverage(format, measured, verdict, isFile ? undefined : paint),
      );
      if (verdict.faults.length > 0) process.exitCode = 1;
    });
}

/**
 * Reads the recorded requests that the flags select.
 *
 * @throws ConfigError for wrong options; UnmeasurableError if the requests cannot be read.
 */
async function record(flags: CoverageFlags): Promise<Recorded> {
  const { readArchive } = await import('../../tools/coverage/archive.ts');
  if (flags.har !== undefined) {
    return { exchanges: flags.har.flatMap((file) => readHar(file, readArchive)) };
  }
  try {
    return await withSandbox(flags, async (client) => {
      const archive = await client.call('GET', '/requests.har?limit=10000', { timeoutMs: 120_000 });
      const exchanges = readArchive(JSON.stringify(archive), client.url());
      return { exchanges, eventCounts: await countEvents(client) };
    });
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new UnmeasurableError((cause as Error).message, { cause });
  }
}

const MAX_ATTACHMENT_BYTES = 64 * 1024 * 1024;

/** Reads an archive, including the bodies in files next to it. Reports bodies that are missing. */
function readHar(
  file: string,
  readArchive: typeof import('../../tools/coverage/archive.ts').readArchive,
): Exchange[] {
  const absent: string[] = [];
  const exchanges = readArchive(readText(file), file, (name) => {
    const body = readBeside(file, name);
    if (body === undefined) absent.push(name);
    return body;
  });
  const [first = ''] = absent;
  if (absent.length > 0) {
    const named = JSON.stringify(first.slice(0, 200));
    console.error(
      `custos: ${file}: ${absent.length} of its bodies are missing and not counted, the first of them ${named}: expected files in the folder of the archive`,
    );
  }
  return exchanges;
}

/**
 * Reads a file that an archive refers to. Returns undefined if it cannot be read, is too large, or is outside the
 * archive's folder. The archive may come from someone else.
 */
function readBeside(archive: string, name: string): string | undefined {
  try {
    const folder = realpathSync(dirname(archive));
    const file = realpathSync(resolve(folder, name));
    const stats = statSync(file);
    if (!file.startsWith(`${folder}${sep}`) || !stats.isFile() || stats.size > MAX_ATTACHMENT_BYTES)
      return undefined;
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

async function countEvents(client: SandboxClient): Promise<NonNullable<Recorded['eventCounts']>> {
  const { data } = await client.call<{ data: NonNullable<Recorded['eventCounts']> }>('GET', '/event_counts');
  return data;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UnmeasurableError(`\`${file}\` cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** Returns the list of accepted gaps, or undefined without `--baseline`. With `--update-baseline`, writes it first. */
async function readBaseline(
  { baseline: file, updateBaseline }: CoverageFlags,
  measured: Measured,
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  if (updateBaseline !== true) return readText(file);
  const [{ baselineOf, judgeCoverage }, { withoutGaps }] = await Promise.all([
    import('../../tools/coverage/judge.ts'),
    import('../../tools/coverage/judge.ts'),
  ]);
  const before = existsSync(file) ? readText(file) : undefined;
  const { closed } = judgeCoverage(measured, { thresholds: [], baseline: before });
  const after = before === undefined ? baselineOf(measured) : withoutGaps(before, closed);
  writeFileSync(file, after);
  return after;
}

/**
 * Parses a percentage such as `80`, or `operations=80` for one dimension.
 *
 * @throws ConfigError
 */
function readThreshold(text: string): Threshold {
  const known: readonly string[] = [
    'all',
    'operations',
    'statuses',
    'errors',
    'requests',
    'responses',
    'events',
    'acknowledged',
    'outcomes',
  ];
  const [, dimension = 'all', digits] = /^(?:([a-z]+)=)?(\d{1,3}(?:\.\d{1,3})?)$/.exec(text) ?? [];
  if (digits === undefined || Number(digits) > 100 || !known.includes(dimension)) {
    const names = known.filter((name) => name !== 'all').join(', ');
    throw invalidOption(
      `--fail-under: expected a percentage such as \`80\` or \`operations=80\`, of ${names}, got \`${text}\``,
    );
  }
  return { dimension: dimension as Threshold['dimension'], percent: Number(digits) };
}
