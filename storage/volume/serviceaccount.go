package volume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// tokenSeconds is the lifetime of a service account's token. API servers that are not
// configured otherwise make of exactly this one a year, for clients that do not read
// the token again; a guest has the token of its start.
const tokenSeconds = 3607

// serviceAccount is an image with the token of a service account, the name of the
// namespace and the certificate of the API server's authority, as containers have
// them. The pod runs as the account. The token is in this volume alone: no container
// but compute has it.
//
// +podvisor:entry
var serviceAccount = accountKind()

func accountKind() Kind {
	k := files{
		name: "serviceAccount", dir: "service-account",
		source: func(vmi.VolumeSource) corev1.VolumeSource {
			return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
				}}},
			}}}
		},
		label: unlabelled(""),
	}.kind()
	mount := k.Pod
	k.Pod = func(v vmi.Volume, n PodNames, c Cluster) Part {
		p := mount(v, n, c)
		p.Account = v.ServiceAccount.ServiceAccountName
		return p
	}
	return k
}
