import { resolve } from 'node:path';
import { Command } from 'commander';

const examples = `
A backup contains the master key and the app secret: keep it like the folder.
For PostgreSQL see docs/backups.md.

Examples:
  $ custos backup --data ./custos /var/backups/custos-monday
  $ custos restore /var/backups/custos-monday --data ./custos --replace`;

/** Returns the command `custos backup`, which copies the data folder of a sandbox, which may be running. */
export function backupCommand(): Command {
  return new Command('backup')
    .description("back up a sandbox's data folder, also while it runs")
    .argument('<target>', 'a new folder')
    .requiredOption('--data <folder>', 'the data folder of the sandbox')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (target: string, flags: { data: string; json?: boolean }) => {
      const { backUpFolder } = await import('../../compose/backups.ts');
      const manifest = await backUpFolder(resolve(flags.data), resolve(target));
      const files = Object.values(manifest.files);
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      console.log(flags.json === true ? JSON.stringify(manifest) : `${files.length} files, ${bytes} bytes`);
    });
}

/** Returns the command `custos restore`, which creates a sandbox's data folder from a backup. */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('make the data folder of a sandbox from a backup')
    .argument('<backup>', 'a folder that `custos backup` wrote')
    .requiredOption('--data <folder>', 'the data folder, empty or absent')
    .option('--replace', 'replace what is in the folder; it is kept beside it')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (backup: string, flags: { data: string; replace?: boolean; json?: boolean }) => {
      const { restoreFolder } = await import('../../compose/backups.ts');
      const restored = await restoreFolder(resolve(backup), resolve(flags.data), {
        replaces: flags.replace === true,
      });
      const kept = restored.replaced === undefined ? '' : `\nbefore    ${restored.replaced}`;
      const { made_at: madeAt, version } = restored.manifest;
      console.log(
        flags.json === true
          ? JSON.stringify({ made_at: madeAt, version, replaced: restored.replaced ?? null })
          : `restored  ${resolve(flags.data)}\nmade at   ${madeAt}, by version ${version}${kept}`,
      );
    });
}
