import { Command } from 'commander';
import { readKeysConfig, readSandboxConfig, readServeConfig } from '../../config/config.ts';
import { packageVersion } from '../../config/package-root.ts';
import { UnmeasurableError } from '../../config/start-error.ts';
import type { Finding } from '../../tools/findings.ts';
import { screenOf } from './terminal.ts';

interface DoctorFlags {
  host: string;
  port: string;
  data?: string;
  json?: boolean;
  serve?: boolean;
  webhookUrl?: string;
}

const examples = `
Exit code: 1 if something keeps the server from working, 2 if the settings are
invalid, 3 if the checks could not be made. Warnings do not count.

Examples:
  $ custos doctor
  $ custos doctor --data .custos --port 4020
  $ custos doctor --serve --webhook-url https://hooks.example.com/custos`;

const marks: Readonly<Record<Finding['state'], string>> = { ok: 'ok', warning: 'warning', fault: 'FAULT' };

/**
 * Returns the command `custos doctor`, which checks whether a sandbox, or with `--serve` the production server, can
 * run on this machine.
 */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check this machine and the sandboxes on it, with advice')
    .option('--host <address>', 'address that a sandbox would listen on', '127.0.0.1')
    .option('--port <number>', 'port that a sandbox would listen on', '4010')
    .option('--data <folder>', 'folder of the sandbox, as in `custos sandbox --data`')
    .option('--serve', 'check what `custos serve` needs, with the settings of the environment')
    .option('--webhook-url <url>', 'with --serve: send one request there, as webhooks are sent')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', examples)
    .action(async (flags: DoctorFlags) => {
      const findings = await (flags.serve === true ? examineServe(flags) : examine(flags));
      for (const finding of findings)
        console.log(flags.json === true ? JSON.stringify(finding) : line(finding));
      if (findings.some(({ state }) => state === 'fault')) process.exitCode = 1;
    });
}

async function examineServe({ webhookUrl }: DoctorFlags): Promise<Finding[]> {
  const config = readServeConfig();
  const { keyStore } = readKeysConfig();
  const { env, execArgv } = process;
  const [{ checkNode }, { examineProduction }] = await Promise.all([
    import('../../tools/client/doctor.ts'),
    import('../../admin/doctor/examine-production.ts'),
  ]);
  try {
    const outside = { keyStore, env, execArgv, folder: process.cwd(), webhookUrl };
    return [checkNode(process.versions.node), ...(await examineProduction(config, outside))];
  } catch (cause) {
    throw new UnmeasurableError(`the checks could not be made: ${(cause as Error).message}`, { cause });
  }
}

async function examine(flags: DoctorFlags): Promise<Finding[]> {
  const { host, port, dataFolder } = readSandboxConfig(flags);
  const [machine, { checkSandboxes }, { listRunningSandboxes }] = await Promise.all([
    import('../../tools/client/doctor.ts'),
    import('../../tools/client/doctor.ts'),
    import('../../tools/client/running-sandboxes.ts'),
  ]);
  const running = listRunningSandboxes();
  return [
    machine.checkNode(process.versions.node),
    await machine.checkPort({ host, port }, running),
    machine.checkCertificate(dataFolder),
    ...(dataFolder === undefined
      ? []
      : [machine.checkFolder(dataFolder), ...(await checkSchema(dataFolder))]),
    machine.checkProxy(),
    ...(await checkSandboxes(running, packageVersion())),
  ];
}

async function checkSchema(folder: string): Promise<Finding[]> {
  const [{ readSchemaState }, { fault, ok }] = await Promise.all([
    import('../../admin/plan-migrations.ts'),
    import('../../tools/findings.ts'),
  ]);
  try {
    const state = await readSchemaState(folder);
    if (state === undefined) return [];
    const { version, newest } = state;
    if (version > newest) {
      const text = `the data is of a newer version (${version}, this one knows ${newest})`;
      return [fault('schema', text, 'run the version that wrote it, or choose another folder')];
    }
    const pending = version < newest ? `; the next start brings it from ${version}` : '';
    return [ok('schema', `version ${newest} of this program${pending}`)];
  } catch (error) {
    const text = `the database cannot be read: ${(error as Error).message}`;
    return [fault('schema', text, 'restore it from a backup, or choose another folder')];
  }
}

const colors = { ok: 'green', warning: 'yellow', fault: 'red' } as const;

function line({ name, state, text, advice }: Finding): string {
  const mark = screenOf().paint(colors[state], marks[state].padEnd(8));
  const first = `${mark}  ${name.padEnd(12)}  ${text}`;
  return advice === undefined ? first : `${first}\n${' '.repeat(24)}${advice}`;
}
