import { Command, Option } from 'commander';
import { readServeConfig, type ServeConfig } from '../config/config.ts';
import { addSettingOptions, environmentHelp } from './setting-options.ts';

const examples = `
Examples:
  $ custos migrate && custos serve
  $ custos apps create --name 'Acme'`;

/**
 * Returns the command `custos serve`, which runs the production server, and refuses to start if a required setting is
 * missing.
 */
export function serveCommand(): Command {
  const command = new Command('serve')
    .description('run the production server on PostgreSQL, configured by the environment')
    .addOption(new Option('--seed <text>').hideHelp())
    .addOption(new Option('--worker').hideHelp());
  return addSettingOptions(command, 'serve')
    .addHelpText('after', () => `${environmentHelp('serve')}\n${examples}`)
    .action(async (flags: ServeFlags) => {
      // A reload signal that arrives during the start must not end the process.
      process.on('SIGHUP', () => undefined);
      if (flags.worker !== true) {
        await serve(flags);
        return;
      }
      try {
        await serveAsWorker(flags);
      } finally {
        // An open channel to the parent process would keep a worker alive that could not start.
        process.disconnect?.();
      }
    });
}

interface ServeFlags {
  readonly seed?: string;
  readonly rpc?: string[];
  readonly workers?: string;
  readonly worker?: boolean;
}

async function serve(flags: ServeFlags): Promise<void> {
  const config = readServeConfig(flags);
  if (config.workers > 1) {
    await serveByWorkers(config);
    return;
  }
  const signer = await startSigner(config);
  const [{ startProduction }, { stopOnSignal }] = await Promise.all([
    import('../compose/serve.ts'),
    import('./serve-until-stopped.ts'),
  ]);
  const server = await startProduction(config, { signer: signer.opening });
  await stopOnSignal(server, server.reload);
}

async function serveAsWorker(flags: ServeFlags): Promise<void> {
  const config = readServeConfig(flags);
  const signer = await startSigner(config);
  const { runWorker } = await import('../compose/workers.ts');
  await runWorker(config, signer.opening);
}

/** Starts this process's signer while the server is being loaded. Each worker has a signer of its own. */
async function startSigner(config: ServeConfig) {
  const { openSigner } = await import('../compose/open-signer.ts');
  const opening = openSigner(config);
  opening.catch(() => undefined);
  return { opening };
}

async function serveByWorkers(config: ServeConfig): Promise<void> {
  const [{ startWorkers }, { stopOnSignal }] = await Promise.all([
    import('../compose/workers.ts'),
    import('./serve-until-stopped.ts'),
  ]);
  const workers = await startWorkers(config, [...process.argv.slice(2), '--worker']);
  await stopOnSignal(workers, workers.restart);
}
