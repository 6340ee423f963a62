import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import { ownSignerSettings, readSignerConfig } from '../config/config.ts';
import { environmentHelp } from './setting-options.ts';

const example = `
Example:
  $ install -d -m 700 /run/custos-signer /var/lib/custos-signer
  $ custos signer --socket /run/custos-signer/socket \\
      --state /var/lib/custos-signer`;

interface SignerFlags {
  readonly socket: string;
  readonly group?: boolean;
  readonly state?: string;
}

/**
 * Returns the command `custos signer`, which runs a separate signer for servers. It can run as another user or in
 * another container.
 */
export function signerCommand(): Command {
  return new Command('signer')
    .description('hold the master keys for the servers of this host')
    .requiredOption('--socket <path>', 'the Unix socket to listen on; only this user may use its folder')
    .option('--group', 'the group of the folder may connect too: servers of another user')
    .option(
      '--state <folder>',
      'where it records how many times requests were signed; only this user may write there (default: the folder of the socket)',
    )
    .addHelpText('after', () => `${environmentHelp('signer')}\n${example}`)
    .action(async (flags: SignerFlags) => {
      // Errors in the settings must be reported here, because this process is then replaced by another program.
      readSignerConfig();
      const [{ becomeSigner }, { claimSocket, claimState }] = await Promise.all([
        import('../compose/open-signer.ts'),
        import('../keys/serve-signer.ts'),
      ]);
      const path = resolve(flags.socket);
      const state = flags.state === undefined ? dirname(path) : resolve(flags.state);
      const isForGroup = flags.group === true;
      await claimSocket({ path, isForGroup });
      if (claimState(state, isForGroup)) {
        const msg = 'the record of signed requests is lost when the machine restarts; use --state';
        console.error(JSON.stringify({ level: 'warn', component: 'signer', folder: state, msg }));
      }
      const group = isForGroup ? ['--group'] : [];
      becomeSigner(ownSignerSettings(), state, [...['--socket', path, '--state', state], ...group]);
    });
}
