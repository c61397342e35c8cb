// Coding agents without a screen: a command line for each turn, the desk's tools from an MCP server, and the command's
// own telemetry. RIG_CLI: copilot, gemini, opencode, qwen. HOME and the working directory are an empty folder.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const job = JSON.parse(process.env.RIG_JOB);
const endpoint = process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
const home = mkdtempSync(join(tmpdir(), 'desk-'));
const server = join(process.env.PYTHONPATH, 'agents', 'desk_mcp.mjs');
const mcp = { command: process.execPath, args: [server], env: { RIG_JOB: process.env.RIG_JOB } };
const model = 'gpt-4o-mini';

function file(path, content) {
  const whole = join(home, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, typeof content === 'string' ? content : JSON.stringify(content));
}

const COMMANDS = {
  copilot() {
    file('.copilot/mcp-config.json', { mcpServers: { desk: { type: 'local', tools: ['*'], ...mcp } } });
    file('AGENTS.md', job.instructions);
    const env = {
      COPILOT_OFFLINE: 'true',
      COPILOT_PROVIDER_BASE_URL: job.base_url,
      COPILOT_PROVIDER_API_KEY: 'none',
      COPILOT_MODEL: model,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    };
    return [env, (text, more) => ['-p', text, '--allow-all-tools', ...(more ? ['--continue'] : [])]];
  },
  gemini() {
    file('.gemini/settings.json', {
      mcpServers: { desk: { ...mcp, trust: true } },
      security: { auth: { selectedType: 'gemini-api-key' } },
      telemetry: {
        enabled: true,
        traces: true,
        logPrompts: true,
        target: 'local',
        otlpProtocol: 'http',
        otlpEndpoint: endpoint,
        useCollector: true,
      },
      privacy: { usageStatisticsEnabled: false },
    });
    file('GEMINI.md', job.instructions);
    const env = {
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: job.model_root,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      GEMINI_CLI_NO_RELAUNCH: 'true',
    };
    return [env, (text, more) => ['-m', 'gemini-2.5-flash', '--yolo', ...(more ? ['-r', 'latest'] : []), '-p', text]];
  },
  opencode() {
    file('opencode.json', {
      provider: {
        desk: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: job.base_url, apiKey: 'none' },
          models: { [model]: {} },
        },
      },
      model: `desk/${model}`,
      small_model: `desk/${model}`,
      mcp: { desk: { type: 'local', command: [mcp.command, ...mcp.args], environment: mcp.env } },
      experimental: { openTelemetry: true },
      agent: { title: { disable: true } },
      autoupdate: false,
      share: 'disabled',
    });
    file('AGENTS.md', job.instructions);
    const env = { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' };
    return [env, (text, more) => ['run', ...(more ? ['--continue'] : [])], true];
  },
  qwen() {
    file('.qwen/settings.json', {
      mcpServers: { desk: { ...mcp, trust: true, alwaysLoadTools: true } },
      security: { auth: { selectedType: 'openai' } },
      telemetry: {
        enabled: true,
        logPrompts: true,
        includeSensitiveSpanAttributes: true,
        target: 'local',
        otlpProtocol: 'http',
        otlpEndpoint: endpoint,
      },
      privacy: { usageStatisticsEnabled: false },
    });
    file('QWEN.md', job.instructions);
    const env = { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: job.base_url, OPENAI_MODEL: model };
    return [env, (text, more) => ['--yolo', ...(more ? ['--continue'] : []), '-p', text]];
  },
};

const [env, line, asked] = COMMANDS[process.env.RIG_CLI]();
const command = join(dirname(process.argv[1]), 'node_modules', ...(process.env.RIG_COMMAND ?? `.bin/${process.env.RIG_CLI}`).split('/'));
let code = 0;
for (const [at, text] of job.turns.entries()) {
  const done = spawnSync(command, line(text, at > 0), {
    cwd: home,
    env: { ...process.env, HOME: home, CI: '1', ...env },
    encoding: 'utf8',
    input: asked ? text : '', // or it would put quotes around the text
    timeout: 60_000,
  });
  console.log(done.stdout, done.stderr, done.error ?? '');
  code ||= done.status ?? 1;
}
rmSync(home, { recursive: true, force: true });
process.exitCode = code;
