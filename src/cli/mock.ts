import { Command } from 'commander';
import { readSandboxConfig, type SandboxConfig, type SandboxFlags } from '../config.ts';
import { cacheFolder } from '../config-client.ts';
import { addListenOptions } from './listen-options.ts';
import { removeStaleReadyFile } from './ready-file.ts';

const examples = `
Examples:
  $ custos mock
  $ curl ... -H 'Prefer: code=404'                     another documented status
  $ curl ... -H 'Prefer: example=personal_sign'
        a named example of the document
  $ custos mock --document petstore.yaml               another API

Validates every request, stores no state and accepts any credentials.`;

/** `custos mock`: responds with the examples of the OpenAPI document. */
export function mockCommand(): Command {
  return addListenOptions(
    new Command('mock').description('respond to every operation with the examples of the OpenAPI document'),
    { data: 'store the certificate in this folder (default: one of this user)' },
  )
    .option('--document <file>', 'respond with the examples of this OpenAPI 3.1 document instead, of any API')
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags & { document?: string }) => {
      const config = readSandboxConfig(flags);
      if (config.readyFile !== undefined) removeStaleReadyFile(config.readyFile);
      if (flags.document !== undefined) {
        await mockDocument(flags.document, config);
        return;
      }
      const [{ startMock }, { serveUntilStopped }] = await Promise.all([
        import('../compose/mock.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      await serveUntilStopped(await startMock(config), config);
    });
}

async function mockDocument(file: string, config: SandboxConfig): Promise<void> {
  const [{ openDocument }, { invalidExamples }, { startDocumentMock }, { serveDocument }] = await Promise.all(
    [
      import('../documents/open-document.ts'),
      import('../documents/invalid-examples.ts'),
      import('../compose/documents/mock-document.ts'),
      import('./serve-until-stopped.ts'),
    ],
  );
  const opened = await openDocument(file, { cacheFolder: cacheFolder() });
  for (const fault of invalidExamples(opened)) console.error(`custos: ${file}: ${fault}`);
  await serveDocument(await startDocumentMock(opened, config), config, opened);
}
