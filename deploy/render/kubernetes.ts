import {
  addressSettings,
  internalPortOffset,
  portOf,
  type Service,
  services,
} from '@content-platform/contract';

/** URL of a listener in Kubernetes. Internal listeners of the gateway have a headless Service of their own. */
const urlOf = (name: Service['name'], listener: 'public' | 'internal'): string => {
  if (listener === 'public') return `http://${name}:${portOf(name)}`;
  return `http://${name === 'gateway' ? 'gateway-processes' : name}:${portOf(name) + internalPortOffset}`;
};

function environment(service: Service): string {
  const { name: own, port, stores } = service;
  const settings = {
    PORT: String(port),
    ...addressSettings(service, urlOf),
    ...(stores.includes('postgres') && { DATABASE_URL_FILE: `/run/secrets/${own}/database-url` }),
    LOGS_DATABASE_URL_FILE: `/run/secrets/${own}/logs-database-url`,
    ...(service.hasSecret && { SERVICE_SECRET_FILE: `/run/secrets/${own}/service-secret` }),
    ...(stores.includes('redis') && { REDIS_URL_FILE: `/run/secrets/${own}/redis-url` }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `            - name: ${name}\n              value: '${value}'\n`)
    .join('');
}

/** Migrates with the owner's credentials, which the process does not get, and creates the role of the process. */
function migration({ name, schema }: Service): string {
  const settings = {
    ...(schema && { DATABASE_URL_FILE: 'database-url' }),
    LOGS_DATABASE_URL_FILE: 'logs-database-url',
  };
  const environment = Object.entries(settings).map(
    ([setting, key]) => `            - { name: ${setting}, value: /run/secrets/owner/${key} }\n`,
  );
  const role = schema ? 'database-url' : 'logs-database-url';
  return `      initContainers:
        - name: migrate
          image: content-platform/${name}
          command: [node, services/chassis/migrate.ts]
          env:
${environment.join('')}          resources:
            requests: { cpu: 100m, memory: 128Mi }
            limits: { memory: 128Mi }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            - { name: owner, mountPath: /run/secrets/owner, readOnly: true }
            - { name: ${name}, mountPath: /run/secrets/roles/${name}, subPath: ${role}, readOnly: true }
`;
}

function deployment(service: Service): string {
  const { name, port, memoryMb, stopSeconds, isSingle } = service;
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
${isSingle ? '  replicas: 1\n' : ''}  selector: { matchLabels: { app.kubernetes.io/name: ${name} } }
  template:
    metadata:
      labels: { app.kubernetes.io/name: ${name} }
    spec:
      terminationGracePeriodSeconds: ${stopSeconds}
${migration(service)}      containers:
        - name: process
          image: content-platform/${name}
          ports:
            - { name: public, containerPort: ${port} }
            - { name: internal, containerPort: ${port + internalPortOffset} }
          envFrom:
            - configMapRef: { name: settings }
            - configMapRef: { name: ${name}, optional: true }
          env:
${environment(service)}          resources:
            requests: { cpu: 100m, memory: ${memoryMb}Mi }
            limits: { memory: ${memoryMb}Mi }
          volumeMounts:
            - { name: ${name}, mountPath: /run/secrets/${name}, readOnly: true }
      volumes:
        - { name: owner, secret: { secretName: owner } }
        - { name: ${name}, secret: { secretName: ${name} } }
`;
}

/** Headless: the gateway resolves every process and spreads requests itself. */
const headlessService = ({ name, port }: Service): string => `apiVersion: v1
kind: Service
metadata:
  name: ${name}
spec:
  clusterIP: None
  selector: { app.kubernetes.io/name: ${name} }
  ports:
    - { name: public, port: ${port}, targetPort: public }
    - { name: internal, port: ${port + internalPortOffset}, targetPort: internal }
`;

const scaling = ({ name }: Service): string => `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: ${name}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: ${name} }
  minReplicas: 2
  maxReplicas: 4
  metrics:
    - type: Resource
      resource: { name: cpu, target: { type: Utilization, averageUtilization: 70 } }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: ${name}
spec:
  maxUnavailable: 1
  # Pods that are not ready do not block draining a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector: { matchLabels: { app.kubernetes.io/name: ${name} } }
`;

function manifestsOf(service: Service): string[] {
  const parts = [deployment(service)];
  // The gateway's Services are written by hand, because clients reach it by one address.
  if (service.name !== 'gateway') parts.push(headlessService(service));
  if (!service.isSingle) parts.push(scaling(service));
  return parts;
}

/** deploy/kubernetes/base/services.yaml: every process. Exceptions are patches beside it. */
export const manifests = (): string =>
  `# Generated by \`npm run render\`; do not edit. Write exceptions as patches.\n${services.flatMap(manifestsOf).join('---\n')}`;
