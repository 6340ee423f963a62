import { Command } from 'commander';
import { databaseOfCell } from '../config/cells.ts';
import { readKeysConfig } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';

const examples = `
First add the new key as a previous one and restart what has the keys (the
signers, or the servers that start them), then exchange both and restart again.
Run this command, then remove the old key. No request is refused during this
time. The command can be interrupted and run again.

Example:
  $ CUSTOS_MASTER_KEY=$NEW CUSTOS_PREVIOUS_MASTER_KEYS=$OLD custos keys rotate`;

/** Returns the command `custos keys …`, which manages the master keys that seal wallet keys. */
export function keysCommand(): Command {
  const keys = new Command('keys')
    .description('manage the master keys that seal wallet keys')
    .addHelpText('after', examples);
  keys.addCommand(
    new Command('rotate')
      .description('re-wrap every sealed key in DATABASE_URL, or in all cells, under the current master key')
      .option('--quiet', 'print only the result')
      .addHelpText('after', examples)
      .action(async ({ quiet }: { quiet?: boolean }) => {
        const {
          keyStore,
          cells: { cells },
        } = readKeysConfig();
        const { rotateKeys } = await import('../admin/rotate-keys.ts');
        const faults: string[] = [];
        for (const { name, databaseUrl } of cells) {
          const of = cells.length > 1 ? `${name}: ` : '';
          try {
            const rewrapped = await rotateKeys(
              { ...databaseOfCell({ name, databaseUrl }), keyStore },
              (count) => {
                if (quiet !== true) console.error(`${of}${count} re-wrapped`);
              },
            );
            const result =
              rewrapped === 0 ? 'every key is under the current master key' : `${rewrapped} keys re-wrapped`;
            console.log(`${of}${result}`);
          } catch (error) {
            // If one cell is unavailable, the keys of the others are rotated all the same.
            if (cells.length === 1) throw error;
            faults.push(`${of}${(error as Error).message}`);
          }
        }
        if (faults.length > 0) throw new StartError(`some keys are not rotated:\n${faults.join('\n')}`);
      }),
  );
  return keys;
}
