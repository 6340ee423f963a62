import type { SandboxConnection } from '../../sandbox/generated/schemas.ts';

/** The ways in which Home shows the connection: the name of the tab, and its text. */
export function connectionTexts(connection: SandboxConnection): readonly (readonly [string, string])[] {
  const {
    base_url: url,
    app_id: id,
    app_secret: secret,
    ca_file: caFile,
    header_prefix: prefix,
  } = connection;
  const ca = caFile ?? '.custos/ca.pem';
  const header = `${prefix}-app-id`;
  return [
    [
      'Environment',
      [
        `export SERVICE_BASE_URL=${url}`,
        `export SERVICE_APP_ID=${id}`,
        `export SERVICE_APP_SECRET=${secret}`,
        `export NODE_EXTRA_CA_CERTS=${ca}`,
      ].join('\n'),
    ],
    [
      'curl',
      [`curl --cacert ${ca} -u ${id}:${secret}`, `-H '${header}: ${id}'`, `${url}/v1/wallets`].join(
        ' \\\n  ',
      ),
    ],
    [
      'TypeScript',
      [
        '// NODE_EXTRA_CA_CERTS must name the certificate before Node starts:',
        `//   NODE_EXTRA_CA_CERTS=${ca} node example.ts`,
        `const response = await fetch('${url}/v1/wallets', {`,
        '  headers: {',
        `    authorization: \`Basic \${btoa('${id}:${secret}')}\`,`,
        `    '${header}': '${id}',`,
        '  },',
        '});',
        'console.log(await response.json());',
      ].join('\n'),
    ],
    [
      'Python',
      [
        'import base64, ssl, urllib.request',
        '',
        `credentials = base64.b64encode(b"${id}:${secret}").decode()`,
        `request = urllib.request.Request("${url}/v1/wallets", headers={`,
        '    "authorization": f"Basic {credentials}",',
        `    "${header}": "${id}",`,
        '})',
        `trust = ssl.create_default_context(cafile="${ca}")`,
        'print(urllib.request.urlopen(request, context=trust).read().decode())',
      ].join('\n'),
    ],
  ];
}

/** Puts dots in place of a secret, for display. */
export function withoutSecret(text: string, secret: string): string {
  return text.replaceAll(secret, '••••••••');
}
