import type { TestSandbox } from './sandbox.ts';

/** The same server as a second app sees it: calls made with it carry that app's credentials. */
export async function asOtherApp(sandbox: TestSandbox): Promise<TestSandbox> {
  const answer = await control<{ id: string; secret: string }>(sandbox, 'POST', 'apps', { name: 'Other' });
  return { ...sandbox, appId: answer.id, appSecret: answer.secret };
}

/** Changes settings of the sandbox's app, as a dashboard would. */
export async function configureApp(sandbox: TestSandbox, settings: object): Promise<void> {
  await control(sandbox, 'PUT', `apps/${sandbox.appId}`, { settings });
}

/** Puts a user into a state, as the user would in the app's own pages. */
export async function configureUser(sandbox: TestSandbox, userId: string, state: object): Promise<object> {
  return control<object>(sandbox, 'PUT', `apps/${sandbox.appId}/users/${userId}`, state);
}

async function control<Body>(
  sandbox: TestSandbox,
  method: 'POST' | 'PUT',
  path: string,
  body: object,
): Promise<Body> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox/${path}`,
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`the control plane answered ${answer.statusCode} ${text}`);
  return JSON.parse(text) as Body;
}
