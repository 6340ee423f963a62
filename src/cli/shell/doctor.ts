import { Command } from 'commander';
import type { Finding } from '../../client/doctor/finding.ts';
import { readSandboxConfig } from '../../config.ts';
import { packageVersion } from '../../package-root.ts';

interface DoctorFlags {
  host: string;
  port: string;
  data?: string;
  json?: boolean;
}

const examples = `
Exit code: 1 if something keeps a sandbox from working. Warnings do not count.

Examples:
  $ custos doctor
  $ custos doctor --data .custos --port 4020`;

const marks: Readonly<Record<Finding['state'], string>> = { ok: 'ok', warning: 'warning', fault: 'FAULT' };

/** `custos doctor`: checks whether a sandbox can run on this machine, and how those that run are. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check this machine and the sandboxes on it, with advice')
    .option('--host <address>', 'address that a sandbox would listen on', '127.0.0.1')
    .option('--port <number>', 'port that a sandbox would listen on', '4010')
    .option('--data <folder>', 'folder of the sandbox, as in `custos sandbox --data`')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', examples)
    .action(async (flags: DoctorFlags) => {
      const findings = await examine(flags);
      for (const finding of findings)
        console.log(flags.json === true ? JSON.stringify(finding) : line(finding));
      if (findings.some(({ state }) => state === 'fault')) process.exitCode = 1;
    });
}

async function examine(flags: DoctorFlags): Promise<Finding[]> {
  const { host, port, dataFolder } = readSandboxConfig(flags);
  const [machine, { checkSandboxes }, { listRunningSandboxes }] = await Promise.all([
    import('../../client/doctor/check-machine.ts'),
    import('../../client/doctor/check-sandboxes.ts'),
    import('../../client/running-sandboxes.ts'),
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
    import('../../admin/schema-state.ts'),
    import('../../client/doctor/finding.ts'),
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

function line({ name, state, text, advice }: Finding): string {
  const first = `${marks[state].padEnd(8)}  ${name.padEnd(12)}  ${text}`;
  return advice === undefined ? first : `${first}\n${' '.repeat(24)}${advice}`;
}
