import { Command } from 'commander';
import { readDatabaseConfig } from '../config/config.ts';
import { cellOption, dataOption } from './setting-options.ts';

interface UsersFlags {
  from: string;
  data?: string;
  cell?: string;
  json?: boolean;
}

const usersExamples = `
Uses the database in DATABASE_URL, or a sandbox's data folder with --data, even
while the sandbox is running.

Example:
  $ custos users take-over cmh2k4x0p00001qx9h3v7t5ab \\
      --from cmh2k5b7r00021qx9d8m4w6cd`;

/** Returns the command `custos users …`, which changes users in ways that only an operator may. */
export function usersCommand(): Command {
  const users = new Command('users')
    .description('transfer accounts between users')
    .addHelpText('after', usersExamples);
  users.addCommand(
    new Command('take-over')
      .description('give a user the only account of another user, who is deleted')
      .argument('<user-id>', 'id of the user who gets the account')
      .requiredOption('--from <user-id>', 'id of the user who has the account; must have no wallet')
      .addOption(dataOption())
      .addOption(cellOption())
      .option('--json', 'print JSON')
      .addHelpText('after', usersExamples)
      .action(async (toUserId: string, flags: UsersFlags) => {
        const config = readDatabaseConfig(flags);
        const { transferAccount } = await import('../admin/administration.ts');
        const user = await transferAccount(config, { fromUserId: flags.from, toUserId });
        console.log(
          flags.json === true
            ? JSON.stringify(user)
            : `user      ${user.id}\napp       ${user.app_id}\naccounts  ${user.linked_accounts.join(', ')}`,
        );
      }),
  );
  return users;
}
