import type { App } from '../domain/access/apps/app.entity.ts';
import { withoutTestCodes } from '../domain/access/apps/app.ts';
import type { SandboxApp } from './generated/schemas.ts';

/** The control plane's representation of an app, without its secrets. */
export function appView(app: App): SandboxApp {
  return {
    id: app.id,
    name: app.name,
    created_at_ms: app.createdAtMs,
    settings: withoutTestCodes(app.settings),
  };
}
