import { listApps } from '../../domain/access/apps/find-app.ts';
import { appView } from '../app-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'listApps'> = async (_input, context) => {
  const apps = await context.read(listApps);
  return { data: apps.map(appView) };
};
