import { listApps as listAllApps } from '../../domain/access/apps/find-app.ts';
import { appView } from '../app-view.ts';
import type { Handler } from '../control-plane.ts';

export const listApps: Handler<'listApps'> = async (_input, context) => {
  const apps = await context.read(listAllApps);
  return { data: apps.map(appView) };
};
