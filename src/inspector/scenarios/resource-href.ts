import type { SandboxScenarioResource } from '../../sandbox/generated/schemas.ts';
import { hrefOf } from '../routes.ts';

/** The page that shows a resource; undefined where none does. */
export function resourceHref({ type, id }: SandboxScenarioResource): string | undefined {
  if (type === 'wallet') return hrefOf('wallets', [id]);
  if (type === 'webhook_endpoint') return hrefOf('webhooks', [id]);
  return undefined;
}
