import type { SandboxScenarioResource } from '../../sandbox/generated/schemas.ts';
import { hrefOf } from '../routes.ts';

/** The page that shows a resource; undefined where none does. */
export function resourceHref({ type, id }: SandboxScenarioResource): string | undefined {
  switch (type) {
    case 'wallet':
      return hrefOf('wallets', [id]);
    case 'webhook_endpoint':
      return hrefOf('webhooks', [id]);
    case 'intent':
      return hrefOf('intents', [id]);
    case 'policy':
      return hrefOf('policies', [id]);
    case 'key_quorum':
      return hrefOf('api', ['getKeyQuorum'], { text: 'getKeyQuorum', key_quorum_id: id });
    default:
      return undefined;
  }
}
