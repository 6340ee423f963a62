import { Command } from 'commander';
import {
  addSandboxClientOptions,
  invalidOption,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';

interface TokenFlags extends SandboxClientFlags {
  app?: string;
  identity?: boolean;
  custom?: boolean;
}

const examples = `
The user is named by id, email address, phone number or custom user id.

Examples:
  $ custos token alice
  $ curl … -H "authorization: Bearer $(custos token alice)"
  $ custos token alice --custom
        a token of the app's own login, for authenticateWallets
  $ custos token alice --json
        all tokens of the session`;

/** Returns the command `custos token`, which signs in as a user, and prints a token. */
export function tokenCommand(): Command {
  return addSandboxClientOptions(
    new Command('token')
      .description('print an access token of any user of a running sandbox')
      .argument('<user>', 'id, email address, phone number or custom user id')
      .option('--identity', 'the identity token instead')
      .option('--custom', "a token of the app's simulated login instead")
      .option('--app <id>', 'the app of the user (default: that of the sandbox)'),
  )
    .addHelpText('after', examples)
    .action((user: string, flags: TokenFlags) => {
      if (flags.identity === true && flags.custom === true) {
        throw invalidOption('token: expected --identity or --custom, got both');
      }
      return withSandbox(flags, async (client) => {
        const { signIn } = await import('../../tools/client/world.ts');
        const session = await signIn(client, user, flags.app);
        if (flags.json === true) return console.log(JSON.stringify(session));
        if (flags.custom !== true) {
          return console.log(flags.identity === true ? session.identity_token : session.access_token);
        }
        if (session.custom_token !== null) return console.log(session.custom_token);
        throw invalidOption(
          `--custom: the app accepts no tokens of the simulated login for \`${user}\`; it needs a linked account of type custom_auth, and \`jwt_auth\` of the app the key of GET /_sandbox/login`,
        );
      });
    });
}
