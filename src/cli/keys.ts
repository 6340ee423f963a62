import { Command } from 'commander';
import { readKeysConfig } from '../config.ts';

const examples = `
Set the new key as CUSTOS_MASTER_KEY and the one before in CUSTOS_PREVIOUS_MASTER_KEYS, restart the servers one by one,
rotate, then take the previous key away. Servers go on answering meanwhile. May be stopped and begun again.

Example:
  $ CUSTOS_MASTER_KEY=$NEW CUSTOS_PREVIOUS_MASTER_KEYS=$OLD custos keys rotate`;

/** `custos keys …`: the master keys that seal the wallets' keys. */
export function keysCommand(): Command {
  const keys = new Command('keys')
    .description('the master keys that seal wallet keys')
    .addHelpText('after', examples);
  keys.addCommand(
    new Command('rotate')
      .description('re-wrap every sealed key of DATABASE_URL under the current master key')
      .option('--quiet', 'print only the result')
      .addHelpText('after', examples)
      .action(async ({ quiet }: { quiet?: boolean }) => {
        const config = readKeysConfig();
        const { rotateKeys } = await import('../admin/rotate-keys.ts');
        const moved = await rotateKeys(config, (count) => {
          if (quiet !== true) console.error(`${count} moved`);
        });
        console.log(moved === 0 ? 'every key is under the current master key' : `${moved} keys moved`);
      }),
  );
  return keys;
}
