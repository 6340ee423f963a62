import { acmeApp } from '../../../mocks/apps.ts';
import { acmeWallet } from '../../../mocks/wallets.ts';
import type { SandboxConfig } from '../../config.ts';
import { isLoopbackHost } from '../../http/origins/local-caller.ts';
import type { ReferenceDocument, ReferenceOptions } from '../../http/pages/reference-pages.ts';

interface OwnExamples {
  readonly appId: string;
  readonly appSecret: string;
  readonly config: Pick<SandboxConfig, 'host' | 'seedData'>;
}

interface Parameter {
  readonly name?: string;
  readonly required?: boolean;
  readonly example?: unknown;
}

/**
 * The reference with the sandbox's own ids, so that requests can be sent from it as they are.
 *
 * CHOICE: the secret is filled in only if it is the published one of a sandbox that this machine alone reaches, because
 * every client of the sandbox can read the page.
 */
export function sandboxReference({ appId, appSecret, config }: OwnExamples): ReferenceOptions {
  const isPublished = appSecret === acmeApp.secret && isLoopbackHost(config.host);
  const own: Record<string, string> = { 'service-app-id': appId, app_id: appId };
  if (config.seedData) own.wallet_id = `ext_wal_${acmeWallet.external_id}`;
  return {
    tailor: (document) => withExamples(document, own),
    credentials: isPublished ? { appId, appSecret } : undefined,
  };
}

/** Optional parameters have no example: the page would send each of them. */
function withExamples(document: ReferenceDocument, own: Readonly<Record<string, string>>): ReferenceDocument {
  const tailored = (parameter: Parameter): object => {
    const { name = '', required, example, ...rest } = parameter;
    if (parameter.name === undefined) return parameter;
    if (required !== true) return { ...rest, name, required };
    return { ...rest, name, required, ...(example === undefined ? {} : { example: own[name] ?? example }) };
  };
  const { parameters } = document.components;
  return {
    ...document,
    paths: mapValues(document.paths, (methods) =>
      mapValues(methods, (operation) =>
        operation.parameters === undefined
          ? operation
          : { ...operation, parameters: operation.parameters.map(tailored) },
      ),
    ),
    components: { ...document.components, parameters: mapValues(parameters, tailored) },
  };
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  to: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, to(value)]));
}
