import { Command } from 'commander';
import { readSignerConfig } from '../config.ts';

const help = `
Settings (environment):
  CUSTOS_MASTER_KEY_FILE, CUSTOS_PREVIOUS_MASTER_KEYS_FILE, CUSTOS_KMS_URL, …
      the keys, as for \`custos serve\`, which then has CUSTOS_SIGNER_SOCKET
      instead of them
  CUSTOS_PREPARED_KEYS
      how many keys of new wallets to prepare while idle (default: 0)
  CUSTOS_USER_LOGINS_FILE
      JSON file by app id of the logins whose tokens it verifies
  CUSTOS_FEE_CEILINGS
      the most that is filled in of the fee of an owned wallet's transaction,
      as for \`custos serve\`; give both the same value
  CUSTOS_SWAP_ROUTERS, CUSTOS_REWARD_DISTRIBUTORS
      the contracts whose swaps and claims it signs for owned wallets, as for
      \`custos serve\`; give both the same values
  CUSTOS_SIGNATURES_PER_REQUEST (default: 3)
      for how many transactions one request of an owner may be signed

Example:
  $ install -d -m 700 /run/custos-signer
  $ custos signer --socket /run/custos-signer/socket`;

/**
 * CHOICE: two more than one, for answers that are lost in a crash. Only here: a signer that a server has started is under
 * the same user as the server, which can read its memory, and sees the requests of one process only, which others outrun;
 * any bound would refuse identical requests without an expiry in the end.
 */
const SIGNATURES_PER_REQUEST = 3;

/** `custos signer`: runs a signer that servers connect to, so that it can have a user or a container of its own. */
export function signerCommand(): Command {
  return new Command('signer')
    .description('hold the master keys for the servers of this host')
    .requiredOption('--socket <path>', 'the Unix socket to listen on; only this user may use its folder')
    .option('--group', 'the group of the folder may connect too: servers of another user')
    .addHelpText('after', help)
    .action(async ({ socket: path, group }: { socket: string; group?: boolean }) => {
      const config = readSignerConfig();
      const [{ servedVault }, { serveSocket }, { print, stopOnSignal }] = await Promise.all([
        import('../signer/serve-channel.ts'),
        import('../signer/serve-socket.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      const served = servedVault({ signaturesPerRequest: SIGNATURES_PER_REQUEST, ...config });
      const server = await serveSocket({ path, isForGroup: group === true }, served);
      print(JSON.stringify({ msg: 'ready', socket: path }));
      // SIGHUP asks for a reload, by habit of whoever rotates logs. There is nothing to reload, and it must not stop.
      await stopOnSignal({ close: async () => void server.close() }, () => undefined);
      served.close();
      process.exit(0);
    });
}
