import type { SandboxConnection } from '../../sandbox/generated/schemas.ts';
import { sampleLanguages } from '../docs/code-samples.ts';

const CA_FILE = '.custos/ca.pem';

/** Returns the examples of a connection that Home shows: each tab's name, and its text with the app's secret. */
export function connectionTexts(connection: SandboxConnection): readonly (readonly [string, string])[] {
  const { base_url: url, app_id: appId, app_secret: appSecret, header_prefix: prefix } = connection;
  const caFile = connection.ca_file ?? CA_FILE;
  const request = {
    ...{ method: 'GET', url: `${url}/v1/wallets`, headers: {}, value: undefined, isForm: false },
    ...{ prefix, appId, appSecret, credentials: 'secret' as const, keyFiles: [], caFile },
  };
  const environment = [
    `export SERVICE_BASE_URL=${url}`,
    `export SERVICE_APP_ID=${appId}`,
    `export SERVICE_APP_SECRET=${appSecret}`,
    `export NODE_EXTRA_CA_CERTS=${caFile}`,
  ];
  return [
    ['Environment', environment.join('\n')],
    ...sampleLanguages.map(({ title, write }) => [title, write(request)] as const),
  ];
}
