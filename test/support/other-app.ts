import type { TestSandbox } from './sandbox.ts';

/** The same server as a second app sees it. Calls through it use that app's credentials. */
export async function asOtherApp(sandbox: TestSandbox): Promise<TestSandbox> {
  const answer = await control<{ id: string; secret: string }>(sandbox, 'POST', 'apps', { name: 'Other' });
  return { ...sandbox, appId: answer.id, appSecret: answer.secret };
}

/** Changes settings of the sandbox's app, like a dashboard. */
export async function configureApp(sandbox: TestSandbox, settings: object): Promise<void> {
  await control(sandbox, 'PUT', `apps/${sandbox.appId}`, { settings });
}

/** Changes the state of a user, as the app's own pages would. */
export async function configureUser(sandbox: TestSandbox, userId: string, state: object): Promise<object> {
  return control<object>(sandbox, 'PUT', `apps/${sandbox.appId}/users/${userId}`, state);
}

/** Calls the control plane. The request must succeed. */
export async function control<Body = unknown>(
  sandbox: TestSandbox,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: object,
): Promise<Body> {
  const { status, body: answered } = await askControl(sandbox, method, path, body);
  if (status !== 200) throw new Error(`the control plane answered ${status} ${JSON.stringify(answered)}`);
  return answered as Body;
}

/** Calls the control plane and returns its response, whether it is an error or not. */
export async function askControl(
  sandbox: TestSandbox,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox/${path}`,
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: answer.statusCode, body: await answer.body.json() };
}
